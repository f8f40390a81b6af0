#include "tools/bench/calls.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string_view>

namespace papaya::bench {

namespace {

// MPI's own function. PMPI_X would do for every purpose but this one: called from a program it passes through
// a trampoline of the preloaded library as well.
template <class Function>
Function native_function(const std::string& name) {
  void* const known = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");  // papaya does not intercept it
  Dl_info mpi{};
  void* library = nullptr;
  if (known != nullptr && dladdr(known, &mpi) != 0) library = dlopen(mpi.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  void* const function = library == nullptr ? nullptr : dlsym(library, name.c_str());
  if (function == nullptr) throw std::runtime_error("cannot find MPI's own " + name);
  return reinterpret_cast<Function>(function);
}

// Doubles of reductions hold small integers, so that sums are exact in any order.
double element(std::uint64_t call, int rank) {
  return static_cast<double>((call * 7 + static_cast<std::uint64_t>(rank) * 3) % 1000);
}
double element_sum(std::uint64_t call, int ranks) {
  double sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += element(call, rank);
  return sum;
}
constexpr std::size_t ripple = 16;  // element i is higher by i modulo this

// Blocks hold words that tell call, sender and receiver.
std::uint64_t word(std::uint64_t call, int from, int to) {
  return (call + 1) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(from) * 0x100000001b3u +
         static_cast<std::uint64_t>(to) * 0xff51afd7ed558ccdu;
}

void fill_block(std::byte* block, std::size_t bytes, std::uint64_t first) {
  std::size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    const std::uint64_t value = first + i;
    std::memcpy(block + i, &value, 8);
  }
  const std::uint64_t value = first + i;
  std::memcpy(block + i, &value, bytes - i);
}

void touch_block(std::byte* block, std::size_t bytes, std::uint64_t first) {
  std::memcpy(block, &first, std::min<std::size_t>(bytes, 8));
  if (bytes > 8) {
    const std::uint64_t value = first + (bytes - 1) / 8 * 8;
    std::memcpy(block + (bytes - 1) / 8 * 8, &value, (bytes - 1) % 8 + 1);
  }
}

// The words between the first and the last are those of `filled`.
bool block_is(const std::byte* block, std::size_t bytes, std::uint64_t filled, std::uint64_t touched) {
  const std::size_t last = (bytes - 1) / 8 * 8;
  std::uint64_t differ = 0;
  for (std::size_t i = 0; i <= last; i += 8) {
    const std::size_t length = std::min<std::size_t>(8, bytes - i);
    const std::uint64_t expected = (i == 0 || i == last ? touched : filled) + i;
    differ |= static_cast<std::uint64_t>(std::memcmp(block + i, &expected, length) != 0);
  }
  return differ == 0;
}

}  // namespace

Switch::Switch()
    : select_(reinterpret_cast<decltype(select_)>(dlsym(RTLD_DEFAULT, "papaya_select"))),
      replaced_(reinterpret_cast<decltype(replaced_)>(dlsym(RTLD_DEFAULT, "papaya_replaced"))),
      explain_(reinterpret_cast<decltype(explain_)>(dlsym(RTLD_DEFAULT, "papaya_explain"))) {}

bool Switch::to(Collective collective, const std::string& selection) const {
  return select_ != nullptr && select_(name_of(Operation{selected_with(collective)}).c_str(), selection.c_str()) == 0;
}

std::string Switch::why_native(Collective collective, MPI_Comm comm, std::size_t bytes) const {
  constexpr std::string_view native = "native: ";
  char text[160] = "";
  if (explain_ == nullptr ||
      explain_(name_of(Operation{selected_with(collective)}).c_str(), &comm, bytes, text, sizeof text) != 0 ||
      !std::string_view(text).starts_with(native))
    return "";
  return text + native.size();
}

std::uint64_t Switch::replaced(Collective collective) const {
  return replaced_ == nullptr ? 0 : replaced_(name_of(Operation{collective}).c_str());
}

void Calls::Free::operator()(std::byte* memory) const noexcept {
  std::free(memory);
}

Calls::Functions Calls::native_functions() {
  Functions native{};
#define PAPAYA_BENCH_ROW(enumerator, Name, Iname)                                  \
  native.enumerator = native_function<decltype(native.enumerator)>("PMPI_" #Name); \
  native.i##enumerator = native_function<decltype(native.i##enumerator)>("PMPI_" #Iname);
  PAPAYA_BENCH_FUNCTIONS(PAPAYA_BENCH_ROW)
#undef PAPAYA_BENCH_ROW
  native.test = native_function<decltype(native.test)>("PMPI_Test");
  native.wait = native_function<decltype(native.wait)>("PMPI_Wait");
  return native;
}

Calls::Calls(Operation operation, std::size_t largest_bytes, int root, MPI_Comm world)
    : operation_(operation), root_(root), world_(world) {
  PMPI_Comm_rank(world, &rank_);
  PMPI_Comm_size(world, &ranks_);
  functions_[static_cast<int>(Path::native)] = native_functions();
  functions_[static_cast<int>(Path::preloaded)] = {
#define PAPAYA_BENCH_ROW(enumerator, Name, Iname) MPI_##Name, MPI_##Iname,
      PAPAYA_BENCH_FUNCTIONS(PAPAYA_BENCH_ROW)
#undef PAPAYA_BENCH_ROW
          MPI_Test,
      MPI_Wait};
  const auto allocate = [&](bool blocks) {
    const std::size_t bytes = largest_bytes * static_cast<std::size_t>(blocks ? ranks_ : 1);
    auto* const memory = static_cast<std::byte*>(std::aligned_alloc(4096, (bytes / 4096 + 1) * 4096));
    if (memory == nullptr) throw std::runtime_error("no memory for the buffers; -m limits the message sizes");
    std::memset(memory, 0, (bytes / 4096 + 1) * 4096);
    return memory;
  };
  send_.reset(
      allocate(sends_to_each(operation.collective) || operation.collective == Collective::reduce_scatter_block));
  receive_.reset(allocate(receives_from_each(operation.collective)));
  MPI_Comm_dup(world_, &own_comm_);
  use(MPI_COMM_NULL);
}

Calls::~Calls() {
  MPI_Comm_free(&own_comm_);
}

void Calls::renew() {
  MPI_Comm_free(&own_comm_);
  MPI_Comm_dup(world_, &own_comm_);
  use(MPI_COMM_NULL);
}

void Calls::set_size(std::size_t bytes) {
  bytes_ = bytes;
  const auto ranks = static_cast<std::size_t>(ranks_);
  counts_.assign(ranks, static_cast<int>(bytes));
  if (operation_.collective == Collective::reduce_scatter) {
    // The message is what is reduced; the first ranks get what is left over.
    const std::size_t doubles = bytes / sizeof(double);
    for (std::size_t rank = 0; rank < ranks; ++rank)
      counts_[rank] = static_cast<int>(doubles / ranks + (rank < doubles % ranks ? 1 : 0));
  }
  places_.assign(ranks, 0);
  std::exclusive_scan(counts_.begin(), counts_.end(), places_.begin(), 0);
}

std::size_t Calls::sent_bytes() const noexcept {
  return operation_.collective == Collective::reduce_scatter_block ? bytes_ * static_cast<std::size_t>(ranks_) : bytes_;
}

std::uint64_t Calls::word_to(std::uint64_t call, int to) const noexcept {
  if (operation_.collective == Collective::bcast && !is_root()) return word(~call, root_, 0);
  return word(call, rank_, sends_to_each(operation_.collective) ? to : 0);
}

void Calls::fill(std::uint64_t call) {
  if (bytes_ == 0) return;
  if (is_reduction(operation_.collective)) {
    auto* const values = reinterpret_cast<double*>(send_.get());
    auto* const results = reinterpret_cast<double*>(receive_.get());
    const double base = element(call, rank_);
    for (std::size_t i = 0; i < sent_bytes() / sizeof(double); ++i) values[i] = base + static_cast<double>(i % ripple);
    // A result that is not written at all must not look right.
    results[0] = results[bytes_ / sizeof(double) - 1] = -1;
    return;
  }
  if (!sends() && operation_.collective != Collective::bcast) {
    touch_block(receive_.get(), bytes_, word(~call, root_, rank_));
    return;
  }
  for (int to = 0; to < blocks_sent(); ++to)
    fill_block(send_.get() + static_cast<std::size_t>(to) * bytes_, bytes_, word_to(call, to));
}

void Calls::touch(std::uint64_t call) noexcept {
  if (bytes_ == 0) return;
  if (is_reduction(operation_.collective)) {
    auto* const values = reinterpret_cast<double*>(send_.get());
    const double base = element(call, rank_);
    const std::size_t last = sent_bytes() / sizeof(double) - 1;
    values[last] = base + static_cast<double>(last % ripple);
    values[0] = base;
    return;
  }
  if (!sends()) return;
  for (int to = 0; to < blocks_sent(); ++to)
    touch_block(send_.get() + static_cast<std::size_t>(to) * bytes_, bytes_, word_to(call, to));
}

template <class Blocking, class Nonblocking, class... Arguments>
void Calls::call(Blocking blocking, Nonblocking nonblocking, Arguments... arguments) {
  if (operation_.form == Form::blocking)
    blocking(arguments..., comm_);
  else
    nonblocking(arguments..., comm_, &request_);
}

void Calls::start(Path path) {
  const Functions& of = functions_[static_cast<int>(path)];
  void* const send = send_.get();
  void* const receive = receive_.get();
  const int count = static_cast<int>(bytes_);
  const int doubles = count / static_cast<int>(sizeof(double));
  const int* const counts = counts_.data();
  const int* const places = places_.data();
  const MPI_Datatype byte = MPI_BYTE;
  const MPI_Datatype number = MPI_DOUBLE;
  const MPI_Op sum = MPI_SUM;
  switch (operation_.collective) {
    case Collective::allreduce:
      return call(of.allreduce, of.iallreduce, send, receive, doubles, number, sum);
    case Collective::reduce:
      return call(of.reduce, of.ireduce, send, receive, doubles, number, sum, root_);
    case Collective::reduce_scatter:
      return call(of.reduce_scatter, of.ireduce_scatter, send, receive, counts, number, sum);
    case Collective::reduce_scatter_block:
      return call(of.reduce_scatter_block, of.ireduce_scatter_block, send, receive, doubles, number, sum);
    case Collective::bcast:
      return call(of.bcast, of.ibcast, send, count, byte, root_);
    case Collective::alltoall:
      return call(of.alltoall, of.ialltoall, send, count, byte, receive, count, byte);
    case Collective::alltoallv:
      return call(of.alltoallv, of.ialltoallv, send, counts, places, byte, receive, counts, places, byte);
    case Collective::allgather:
      return call(of.allgather, of.iallgather, send, count, byte, receive, count, byte);
    case Collective::allgatherv:
      return call(of.allgatherv, of.iallgatherv, send, count, byte, receive, counts, places, byte);
    case Collective::gather:
      return call(of.gather, of.igather, send, count, byte, receive, count, byte, root_);
    case Collective::gatherv:
      return call(of.gatherv, of.igatherv, send, count, byte, receive, counts, places, byte, root_);
    case Collective::scatter:
      return call(of.scatter, of.iscatter, send, count, byte, receive, count, byte, root_);
    case Collective::scatterv:
      return call(of.scatterv, of.iscatterv, send, counts, places, byte, receive, count, byte, root_);
    default:
      return call(of.barrier, of.ibarrier);
  }
}

bool Calls::test(Path path) {
  int done = 1;
  if (request_ != MPI_REQUEST_NULL) functions_[static_cast<int>(path)].test(&request_, &done, MPI_STATUS_IGNORE);
  return done != 0;
}

void Calls::wait(Path path) {
  if (request_ != MPI_REQUEST_NULL) functions_[static_cast<int>(path)].wait(&request_, MPI_STATUS_IGNORE);
}

bool Calls::check_sums(std::uint64_t call, std::uint64_t touched) const {
  const auto* const results = reinterpret_cast<const double*>(receive_.get());
  const auto own = static_cast<std::size_t>(rank_);
  const bool scattered = operation_.collective == Collective::reduce_scatter;
  const std::size_t count = scattered ? static_cast<std::size_t>(counts_[own]) : bytes_ / sizeof(double);
  // Where the own part begins, in what is reduced.
  const std::size_t begin = scattered ? static_cast<std::size_t>(places_[own])
                            : operation_.collective == Collective::reduce_scatter_block ? own * count
                                                                                        : 0;
  const std::size_t last = sent_bytes() / sizeof(double) - 1;
  const double filled_base = element_sum(call, ranks_);
  const double touched_base = element_sum(touched, ranks_);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = begin + i;
    const double base = at == 0 || at == last ? touched_base : filled_base;
    wrong += results[i] != base + static_cast<double>(at % ripple) * ranks_ ? 1 : 0;
  }
  return wrong == 0;
}

bool Calls::check(std::uint64_t call, std::uint64_t touched) const {
  if (bytes_ == 0 || !receives()) return true;
  const Collective collective = operation_.collective;
  if (is_reduction(collective)) return check_sums(call, touched);
  if (collective == Collective::bcast)
    return block_is(send_.get(), bytes_, word(call, root_, 0), word(touched, root_, 0));
  const int to = sends_to_each(collective) ? rank_ : 0;
  if (is_from_root(collective))
    return block_is(receive_.get(), bytes_, word(call, root_, to), word(touched, root_, to));
  for (int from = 0; from < ranks_; ++from)
    if (!block_is(receive_.get() + static_cast<std::size_t>(from) * bytes_, bytes_, word(call, from, to),
                  word(touched, from, to)))
      return false;
  return true;
}

}  // namespace papaya::bench
