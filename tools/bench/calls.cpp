#include "tools/bench/calls.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

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

std::string lower_name(Collective collective) {
  std::string name(name_of(collective));
  name[0] = static_cast<char>(name[0] - 'A' + 'a');
  return name;
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
      replaced_(reinterpret_cast<decltype(replaced_)>(dlsym(RTLD_DEFAULT, "papaya_replaced"))) {}

bool Switch::to(Collective collective, const std::string& selection) const {
  return select_ != nullptr && select_(lower_name(collective).c_str(), selection.c_str()) == 0;
}

std::uint64_t Switch::replaced(Collective collective) const {
  return replaced_ == nullptr ? 0 : replaced_(lower_name(collective).c_str());
}

void Calls::Free::operator()(std::byte* memory) const noexcept {
  std::free(memory);
}

Calls::Calls(Collective collective, std::size_t largest_bytes, int root, MPI_Comm comm)
    : collective_(collective), root_(root), comm_(comm) {
  PMPI_Comm_rank(comm, &rank_);
  PMPI_Comm_size(comm, &ranks_);
  functions_[static_cast<int>(Path::native)] = {native_function<decltype(&MPI_Allreduce)>("PMPI_Allreduce"),
                                                native_function<decltype(&MPI_Reduce)>("PMPI_Reduce"),
                                                native_function<decltype(&MPI_Bcast)>("PMPI_Bcast"),
                                                native_function<decltype(&MPI_Alltoall)>("PMPI_Alltoall"),
                                                native_function<decltype(&MPI_Allgather)>("PMPI_Allgather"),
                                                native_function<decltype(&MPI_Barrier)>("PMPI_Barrier")};
  functions_[static_cast<int>(Path::preloaded)] = {MPI_Allreduce, MPI_Reduce,    MPI_Bcast,
                                                   MPI_Alltoall,  MPI_Allgather, MPI_Barrier};
  const auto allocate = [&](bool blocks) {
    const std::size_t bytes = largest_bytes * static_cast<std::size_t>(blocks ? ranks_ : 1);
    auto* const memory = static_cast<std::byte*>(std::aligned_alloc(4096, (bytes / 4096 + 1) * 4096));
    if (memory == nullptr) throw std::runtime_error("no memory for the buffers; -m limits the message sizes");
    std::memset(memory, 0, (bytes / 4096 + 1) * 4096);
    return memory;
  };
  send_.reset(allocate(collective == Collective::alltoall));
  receive_.reset(allocate(collective == Collective::alltoall || collective == Collective::allgather));
}

void Calls::set_size(std::size_t bytes) {
  bytes_ = bytes;
}

void Calls::fill(std::uint64_t call) {
  if (bytes_ == 0) return;
  switch (collective_) {
    case Collective::allreduce:
    case Collective::reduce: {
      auto* const values = reinterpret_cast<double*>(send_.get());
      auto* const results = reinterpret_cast<double*>(receive_.get());
      const double base = element(call, rank_);
      for (std::size_t i = 0; i < bytes_ / sizeof(double); ++i) values[i] = base + static_cast<double>(i % ripple);
      // A result that is not written at all must not look right.
      results[0] = results[bytes_ / sizeof(double) - 1] = -1;
      break;
    }
    case Collective::bcast:
      fill_block(send_.get(), bytes_, word(rank_ == root_ ? call : ~call, root_, 0));
      break;
    case Collective::allgather:
      fill_block(send_.get(), bytes_, word(call, rank_, 0));
      break;
    case Collective::alltoall:
      for (int to = 0; to < ranks_; ++to)
        fill_block(send_.get() + static_cast<std::size_t>(to) * bytes_, bytes_, word(call, rank_, to));
      break;
    default:
      break;
  }
}

void Calls::touch(std::uint64_t call) noexcept {
  if (bytes_ == 0) return;
  switch (collective_) {
    case Collective::allreduce:
    case Collective::reduce: {
      auto* const values = reinterpret_cast<double*>(send_.get());
      const std::size_t last = bytes_ / sizeof(double) - 1;
      const double base = element(call, rank_);
      values[last] = base + static_cast<double>(last % ripple);
      values[0] = base;
      break;
    }
    case Collective::bcast:
      if (rank_ == root_) touch_block(send_.get(), bytes_, word(call, root_, 0));
      break;
    case Collective::allgather:
      touch_block(send_.get(), bytes_, word(call, rank_, 0));
      break;
    case Collective::alltoall:
      for (int to = 0; to < ranks_; ++to)
        touch_block(send_.get() + static_cast<std::size_t>(to) * bytes_, bytes_, word(call, rank_, to));
      break;
    default:
      break;
  }
}

void Calls::run(Path path) {
  const Functions& functions = functions_[static_cast<int>(path)];
  void* const send = send_.get();
  void* const receive = receive_.get();
  const int count = static_cast<int>(bytes_);
  const int doubles = count / static_cast<int>(sizeof(double));
  switch (collective_) {
    case Collective::allreduce:
      functions.allreduce(send, receive, doubles, MPI_DOUBLE, MPI_SUM, comm_);
      break;
    case Collective::reduce:
      functions.reduce(send, receive, doubles, MPI_DOUBLE, MPI_SUM, root_, comm_);
      break;
    case Collective::bcast:
      functions.bcast(send, count, MPI_BYTE, root_, comm_);
      break;
    case Collective::alltoall:
      functions.alltoall(send, count, MPI_BYTE, receive, count, MPI_BYTE, comm_);
      break;
    case Collective::allgather:
      functions.allgather(send, count, MPI_BYTE, receive, count, MPI_BYTE, comm_);
      break;
    default:
      functions.barrier(comm_);
      break;
  }
}

bool Calls::check(std::uint64_t call, std::uint64_t touched) const {
  if (bytes_ == 0) return true;
  switch (collective_) {
    case Collective::allreduce:
    case Collective::reduce: {
      if (!has_result()) return true;
      const auto* const results = reinterpret_cast<const double*>(receive_.get());
      const std::size_t count = bytes_ / sizeof(double);
      const double filled_base = element_sum(call, ranks_);
      const double touched_base = element_sum(touched, ranks_);
      const auto ripples = [&](std::size_t i) { return static_cast<double>(i % ripple) * ranks_; };
      std::size_t wrong = 0;
      for (std::size_t i = 1; i + 1 < count; ++i) wrong += results[i] != filled_base + ripples(i) ? 1 : 0;
      wrong += results[0] != touched_base ? 1 : 0;
      wrong += results[count - 1] != touched_base + ripples(count - 1) ? 1 : 0;
      return wrong == 0;
    }
    case Collective::bcast:
      return block_is(send_.get(), bytes_, word(call, root_, 0), word(touched, root_, 0));
    case Collective::allgather:
    case Collective::alltoall:
      for (int from = 0; from < ranks_; ++from) {
        const int to = collective_ == Collective::alltoall ? rank_ : 0;
        if (!block_is(receive_.get() + static_cast<std::size_t>(from) * bytes_, bytes_, word(call, from, to),
                      word(touched, from, to)))
          return false;
      }
      return true;
    default:
      return true;
  }
}

}  // namespace papaya::bench
