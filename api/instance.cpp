#include "api/instance.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <new>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "interpose/copy_communicator.hpp"
#include "interpose/device_memory.hpp"
#include "interpose/mpi_types.hpp"

namespace papaya::weak {

namespace {

std::uint64_t deadline_after(double seconds) noexcept {
  if (seconds < 0) return ~std::uint64_t{0};
  const double ns = std::min(seconds * 1e9, 1e18);
  return clock::ticks() + policy().to_ticks(ns);
}

// This process's, but for what all ranks have to do alike: that is rank 0's. So is the birth.
Settings agree_on_settings(MPI_Comm comm, Birth& birth) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  std::vector<std::string> warnings;
  Settings settings = Settings::from_environment(environ, warnings);
  static std::atomic<bool> has_warned{false};
  if (rank == 0 && !has_warned.exchange(true))
    for (const std::string& warning : warnings) log::warn(warning);
  static std::atomic<std::uint64_t> created{0};
  struct {
    std::int64_t node_size;
    char transport[8];
    Birth birth;
  } of_first{
      settings.number(Variable::node_size),
      {},
      {clock::monotonic_ns(), static_cast<std::uint64_t>(getpid()), created.fetch_add(1, std::memory_order_relaxed)}};
  settings.text(Variable::transport).copy(of_first.transport, sizeof of_first.transport - 1);
  PMPI_Bcast(&of_first, sizeof of_first, MPI_BYTE, 0, comm);
  settings.set(Variable::node_size, fmt::format("{}", of_first.node_size));
  settings.set(Variable::transport, of_first.transport);
  birth = of_first.birth;
  return settings;
}

bool reduces(WeakCollective collective) {
  return collective != WeakCollective::threshold_bcast;
}
bool has_root(WeakCollective collective) {
  return collective == WeakCollective::threshold_bcast || collective == WeakCollective::threshold_reduce;
}

// What has to be the same everywhere, as whole numbers.
struct Fact {
  std::string_view name;
  int code;
  bool is_number = false;
};
constexpr std::array facts{
    Fact{"the collective", MPI_ERR_ARG},
    Fact{"the algorithm", MPI_ERR_ARG},
    Fact{"count", MPI_ERR_COUNT, true},
    Fact{"the size of type", MPI_ERR_TYPE, true},
    Fact{"op", MPI_ERR_OP},
    Fact{"root", MPI_ERR_ROOT, true},
    Fact{"the share", MPI_ERR_ARG},
};

// A user's are all one.
std::int64_t number_of(MPI_Op op) {
  kernels::Operation operation{};
  return operation_of(op, operation) ? static_cast<std::int64_t>(operation) : -1;
}

}  // namespace

Error Instance::check(const Wish& wish) {
  if (wish.count < 0) return {MPI_ERR_COUNT, fmt::format("count is {}; it must not be negative", wish.count)};
  if (!is_plausible(wish.type) || !is_usable(wish.type))
    return {MPI_ERR_TYPE, "type is not a committed datatype; call MPI_Type_commit first"};
  if (has_root(wish.collective) && (wish.root < 0 || wish.root >= meeting_->ranks()))
    return {MPI_ERR_ROOT,
            fmt::format("root is {}; the communicator has ranks 0 to {}", wish.root, meeting_->ranks() - 1)};
  if (!(wish.share > 0 && wish.share <= 1))
    return {MPI_ERR_ARG, fmt::format("the share is {}; it must be above 0 and at most 1", wish.share)};
  type_ = wish.type;
  int size = 0;
  if (!is_named(wish.type) && PMPI_Type_dup(wish.type, &type_) != MPI_SUCCESS)
    return {MPI_ERR_TYPE, "type cannot be copied"};
  PMPI_Type_size(type_, &size);
  request_ = {.ranks = meeting_->ranks(),
              .count = static_cast<std::size_t>(wish.count),
              .element_bytes = static_cast<std::size_t>(size),
              .root = wish.root,
              .share = wish.share};
  constexpr std::size_t most_bytes = std::size_t{1} << 46;  // so that sums of them are numbers
  if (request_.element_bytes != 0 && request_.count > most_bytes / request_.element_bytes)
    return {MPI_ERR_NO_MEM,
            fmt::format("no rank has memory for {} elements; create it for fewer elements", wish.count)};
  if (reduces(wish.collective)) {
    if (wish.op == MPI_OP_NULL || !is_plausible_operation(wish.op)) return {MPI_ERR_OP, "op is not an operation"};
    if (!describe(type_, wish.op, reduction_, context_)) return {MPI_ERR_OP, "MPI does not define op for this type"};
    request_.element_bytes = reduction_.element_bytes;
    request_.reduction = &reduction_;
    kernels::ElementType element{};
    kernels::Operation operation{};
    if (element_type_of(type_, element)) request_.type = element;
    if (operation_of(wish.op, operation)) request_.operation = operation;
  }
  std::string problem;
  if (!choose(wish.collective, wish.algorithm == nullptr ? "" : wish.algorithm, request_.bytes(), choice_, problem))
    return {MPI_ERR_ARG, problem};
  for (const Wish::Value& value : wish.values)
    if (!set(choice_, value.parameter, value.value, problem)) return {MPI_ERR_ARG, problem};
  if ((choice_.algorithm->commutative_only || wish.accumulates) && !reduction_.commutative)
    return {MPI_ERR_OP,
            fmt::format("{} needs a commutative op", wish.accumulates ? "what adds up" : choice_.algorithm->name)};
  request_.values = choice_.values;
  // The bytes of all slots have to be a number.
  std::int64_t most_slots = 0;
  for (std::size_t i = 0; i < choice_.values.size(); ++i)
    if (const std::string_view name = choice_.algorithm->parameters[i].name;
        name == "slack" || name == "lag" || name == "slots")
      most_slots = std::max(most_slots, choice_.values[i]);
  const double slots = 4.0 * (static_cast<double>(most_slots) + 1) * request_.ranks;
  if (slots * static_cast<double>(request_.bytes() + 4096) * request_.ranks > 0x1p60)
    return {MPI_ERR_NO_MEM, fmt::format("no rank has memory for that many slots of {} bytes; create it for fewer "
                                        "elements or with less slack",
                                        request_.bytes())};
  const char* const refusal = choice_.algorithm->refusal == nullptr ? nullptr : choice_.algorithm->refusal(request_);
  return refusal == nullptr ? Error{} : Error{MPI_ERR_UNSUPPORTED_OPERATION, refusal};
}

// Every number and its negative: the least of both tell whether all are equal. The first is whether a rank has found
// an error by itself.
Error Instance::compare(const Wish& wish, const Error& found) const {
  constexpr std::size_t most_values = 8;
  std::array<std::int64_t, 1 + 2 * (facts.size() + most_values)> least{};
  least[0] = found.is_set() ? 0 : 1;
  std::size_t at = 1;
  const auto put = [&](std::int64_t number) {
    least[at++] = number;
    least[at++] = -number;
  };
  put(2 * static_cast<std::int64_t>(wish.collective) + (wish.accumulates ? 1 : 0));
  put(std::find(weak_registry().begin(), weak_registry().end(), choice_.algorithm) - weak_registry().begin());
  put(wish.count);
  put(static_cast<std::int64_t>(request_.element_bytes));
  put(number_of(wish.op));
  put(wish.root);
  put(std::llround(wish.share * 1e15));
  for (std::size_t i = 0; i < std::min(choice_.values.size(), most_values); ++i) put(choice_.values[i]);
  PMPI_Allreduce(MPI_IN_PLACE, least.data(), static_cast<int>(least.size()), MPI_INT64_T, MPI_MIN, meeting_->comm());
  if (least[0] == 0) return meeting_->agree(found);
  for (std::size_t i = 0; i < facts.size() + most_values; ++i) {
    const std::int64_t lowest = least[1 + 2 * i];
    const std::int64_t highest = -least[2 + 2 * i];
    if (lowest == highest) continue;
    const bool is_value = i >= facts.size();
    const std::string_view name = is_value ? choice_.algorithm->parameters[i - facts.size()].name : facts[i].name;
    return {is_value ? MPI_ERR_ARG : facts[i].code,
            fmt::format("{} differs between the ranks of the communicator{}", name,
                        is_value || facts[i].is_number ? fmt::format(": {} to {}", lowest, highest) : "")};
  }
  return {};
}

Error Instance::prepare(const Wish& wish, const Settings& settings) {
  if (const Error error = compare(wish, check(wish)); error.is_set()) return error;
  const WeakDescriptor& algorithm = *choice_.algorithm;
  const bool has_region = algorithm.region_bytes != nullptr && meeting_->is_on_one_node();
  if (!has_region && algorithm.segment == nullptr)
    return {MPI_ERR_COMM, fmt::format("{} needs all ranks of the communicator on one node", algorithm.name)};
  const Error error = meeting_->open(algorithm.segment != nullptr ? algorithm.segment(request_) : SegmentShape{64, 1},
                                     has_region ? algorithm.region_bytes(request_) : 0, settings);
  if (error.is_set()) return error;
  Error lacks{};
  try {
    algorithm_ = algorithm.prepare(meeting_->team(), request_);
    const auto slack = std::find_if(wish.values.begin(), wish.values.end(),
                                    [](const Wish::Value& one) { return one.parameter == "slack"; });
    if (wish.accumulates)
      total_ = std::make_unique<RunningTotal>(request_.count, reduction_, static_cast<std::uint64_t>(slack->value));
  } catch (const std::bad_alloc&) {
    lacks = {MPI_ERR_NO_MEM, "a rank has too little memory; create it for fewer elements or with less slack"};
  }
  return meeting_->agree(lacks);
}

std::unique_ptr<Instance> Instance::create(MPI_Comm comm, const Wish& wish, Error& error) {
  MPI_Comm copy = MPI_COMM_NULL;
  if (!copy_communicator(comm, &copy)) {
    error = {MPI_ERR_COMM, "MPI cannot copy the communicator"};
    return nullptr;
  }
  PMPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
  std::unique_ptr<Instance> self(new Instance);
  const Settings settings = agree_on_settings(copy, self->birth_);
  self->meeting_ = std::make_unique<Meeting>(copy, settings);
  error = self->prepare(wish, settings);
  if (error.is_set()) return nullptr;
  PMPI_Comm_get_errhandler(comm, &self->handler_);
  enter(*self);
  self->is_entered_ = true;
  self->record(comm, wish);
  return self;
}

void Instance::record(MPI_Comm comm, const Wish& wish) {
  const WeakDescriptor& algorithm = *choice_.algorithm;
  std::string parameters = wish.share < 1 && has_root(wish.collective) ? fmt::format("share={:g}", wish.share) : "";
  for (std::size_t i = 0; i < choice_.values.size(); ++i)
    parameters +=
        fmt::format("{}{}={}", parameters.empty() ? "" : ",", algorithm.parameters[i].name, choice_.values[i]);
  recording_.open(comm, wish.accumulates ? "ssp_accumulate" : std::string(name_of(wish.collective)),
                  std::string(algorithm.name), parameters, request_.bytes(), wish.root);
}

Instance::~Instance() {
  if (is_entered_) leave(*this);
  algorithm_.reset();
  if (!is_named(type_) && type_ != MPI_DATATYPE_NULL) PMPI_Type_free(&type_);
  if (handler_ != MPI_ERRHANDLER_NULL) PMPI_Errhandler_free(&handler_);
}

Instance::Part Instance::part() const noexcept {
  const bool is_root = request_.root == meeting_->rank();
  switch (choice_.algorithm->collective) {
    case WeakCollective::threshold_bcast:
      return {.reads = is_root, .writes = !is_root};
    case WeakCollective::threshold_reduce:
      return {.reads = true, .writes = is_root};
    default:
      return {.reads = true, .writes = true};
  }
}

// MPI_BOTTOM is a null pointer as well, but only types that are not contiguous begin elsewhere.
bool Instance::is_missing(const void* buffer) const noexcept {
  return buffer == nullptr && request_.bytes() != 0 && is_dense(type_);
}

Error Instance::start(const void* contribution, void* result) {
  const auto [reads, writes] = part();
  const bool is_in_place = reads && contribution == MPI_IN_PLACE;
  const bool takes_contribution = reads && !is_in_place;
  const bool takes_result = writes || is_in_place;
  if (takes_contribution && is_missing(contribution)) return {MPI_ERR_BUFFER, "the contribution is a null pointer"};
  if (takes_result && is_missing(result)) return {MPI_ERR_BUFFER, "the result is a null pointer"};
  const std::uint64_t now = clock::ticks();
  const auto stage = [&](const void* buffer, Staging::Use use) {
    return Staging(buffer, request_.count, type_, request_.element_bytes, use, device_memory::holds(buffer, now));
  };
  contribution_ = takes_contribution ? stage(contribution, Staging::Use::read) : Staging();
  result_ = takes_result ? stage(result, !is_in_place ? Staging::Use::write
                                         : writes     ? Staging::Use::both
                                                      : Staging::Use::read)
                         : Staging();
  if (contribution_.lacks() != 0 || result_.lacks() != 0)
    return {MPI_ERR_NO_MEM, fmt::format("there is no memory to pack {} bytes in", request_.bytes())};
  const std::byte* const mine = is_in_place ? result_.bytes() : contribution_.bytes();
  const std::byte* const brought = total_ == nullptr ? mine : total_->add(mine);
  const std::lock_guard turn(turn_);
  is_under_way_ = true;
  recording_.begin();
  algorithm_->start({.send = brought,
                     .receive = writes ? result_.bytes() : nullptr,
                     .count = request_.count,
                     .bytes = request_.bytes(),
                     .root = request_.root,
                     .reduction = request_.reduction});
  algorithm_->progress();
  recording_.leave();
  return {};
}

void Instance::finish() {
  if (total_ != nullptr) total_->complete(*algorithm_, result_.bytes());
  result_.write_back(algorithm_->status().bytes / std::max<std::size_t>(request_.element_bytes, 1));
  contribution_ = {};
  result_ = {};
  is_under_way_ = false;
  recording_.finish([this] { return status(); }, request_.element_bytes);
  meeting_->leave_call(request_.bytes());
}

Error Instance::flush() {
  if (choice_.algorithm->collective != WeakCollective::sparse_allreduce)
    return {MPI_ERR_ARG, "only a sparse allreduce keeps something back"};
  algorithm_->flush();
  return {};
}

Error Instance::withdraw(void* contributions, long long& calls) {
  if (choice_.algorithm->collective != WeakCollective::partial_allreduce)
    return {MPI_ERR_ARG, "only a partial allreduce carries contributions over"};
  if (is_missing(contributions)) return {MPI_ERR_BUFFER, "the buffer is a null pointer"};
  Staging to(contributions, request_.count, type_, request_.element_bytes, Staging::Use::write,
             device_memory::holds(contributions, clock::ticks()));
  if (to.lacks() != 0) return {MPI_ERR_NO_MEM, fmt::format("there is no memory to pack {} bytes in", to.lacks())};
  calls = static_cast<long long>(algorithm_->withdraw(to.bytes()));
  if (calls != 0) to.write_back();
  return {};
}

void Turn::lock() noexcept {
  while (!try_lock()) sched_yield();
}

// A call that has all it waits for stays under way until its own thread finds so.
void Instance::progress() noexcept {
  meeting_->progress();
  const std::unique_lock turn(turn_, std::try_to_lock);
  if (turn && is_under_way_) algorithm_->progress();
}

bool Instance::test() {
  if (!is_under_way_) return true;
  recording_.enter();
  bool is_done = false;
  {
    const std::lock_guard turn(turn_);
    int found = 0;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, meeting_->comm(), &found, MPI_STATUS_IGNORE);
    is_done = algorithm_->progress();
    if (is_done) finish();
  }
  // As whoever waits does: what it tests for may need another collective of this rank's first.
  if (!is_done) {
    move_all_on();
    recording_.leave();
  }
  return is_done;
}

bool Instance::wait(double seconds) {
  if (!is_under_way_) return true;
  if (seconds == 0) return test();
  recording_.enter();
  const std::lock_guard turn(turn_);
  const bool is_done = algorithm_->finish(deadline_after(seconds), site_);
  is_done ? finish() : recording_.leave();
  return is_done;
}

papaya_weak_status Instance::status() const {
  const WeakStatus& status = algorithm_->status();
  return {.clock = static_cast<long long>(status.clock),
          .oldest = static_cast<long long>(status.oldest),
          .own = static_cast<long long>(total_ != nullptr ? status.clock : status.own),
          .unused = static_cast<long long>(status.unused),
          .ranks = status.ranks,
          .elements = static_cast<MPI_Count>(status.bytes / std::max<std::size_t>(request_.element_bytes, 1)),
          .share = status.share,
          .residual = status.residual,
          .waited = policy().to_ns(status.waited_ticks) * 1e-9};
}

Error Instance::late() {
  const std::lock_guard turn(turn_);
  const int rank = algorithm_->awaited_rank();
  return {MPI_ERR_PENDING, rank < 0 ? fmt::format("call {} waits for other ranks", algorithm_->status().clock)
                                    : fmt::format("call {} waits for rank {}", algorithm_->status().clock, rank)};
}

// Looks at what MPI moves too, which rings no bell.
template <class Ready>
bool Instance::wait_for(Ready&& ready, std::uint64_t deadline_ticks) {
  bool is_late = false;
  meeting_->team().wire->wait(
      policy(), site_, [&] { return ready() || (is_late = clock::ticks() >= deadline_ticks); }, nullptr);
  return !is_late;
}

// True once it has come to that stage, or there is nothing more to be done.
bool Instance::advance_to(Closing stage) {
  const auto is_complete = [this] {
    int flag = 0;
    return PMPI_Test(&request_of_closing_, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag != 0;
  };
  while (closing_ < stage) switch (closing_) {
      case Closing::not_begun: {
        // Who has made fewer calls will never send what the others wait for.
        const auto calls = static_cast<std::int64_t>(algorithm_->status().clock);
        calls_ = {calls, -calls};
        PMPI_Iallreduce(calls_.data(), least_calls_.data(), 2, MPI_INT64_T, MPI_MIN, meeting_->comm(),
                        &request_of_closing_);
        closing_ = Closing::comparing;
        break;
      }
      case Closing::comparing:
        if (!is_complete()) return false;
        closing_ = least_calls_[0] == -least_calls_[1] ? Closing::ending : Closing::uneven;
        break;
      case Closing::ending:
        // What follows waits in MPI for all: a rank that has given up before is not among them.
        if (is_under_way_ || !algorithm_->may_end()) return false;
        PMPI_Ibarrier(meeting_->comm(), &request_of_closing_);
        closing_ = Closing::leaving;
        break;
      case Closing::leaving:
        if (!is_complete()) return false;
        closing_ = Closing::done;
        break;
      case Closing::done:
      case Closing::uneven:
        break;
    }
  return true;
}

Error Instance::tear_down() {
  if (closing_ == Closing::uneven)
    return {MPI_ERR_ARG,
            fmt::format("ranks have made different numbers of calls, {} to {}; its memory is not given back",
                        least_calls_[0], -least_calls_[1])};
  leave(*this);
  is_entered_ = false;
  algorithm_.reset();
  meeting_.reset();
  return {};
}

Error Instance::close() {
  const std::uint64_t deadline = deadline_after(limit());
  if (wait_for([this] { return advance_to(Closing::done); }, deadline)) return tear_down();
  return {MPI_ERR_PENDING,
          fmt::format("other ranks have not come to free it within {} s; its memory is not given back", limit_)};
}

// All ranks come here, or have been to close(): what is waited for first is that, as MPI_Finalize does.
void Instance::end() noexcept {
  if (closing_ == Closing::uneven) return;
  if (!wait_for([this] { return advance_to(Closing::ending); }, deadline_after(limit()))) return;
  // From here on there is nothing that takes long, but for what a rank does that has given up.
  const double long_enough = limit_ > 0 ? limit_ : 10;
  if (closing_ != Closing::uneven && is_under_way_ && !wait(long_enough)) return;
  if (!wait_for([this] { return advance_to(Closing::done); }, deadline_after(long_enough))) return;
  if (const Error error = tear_down(); error.is_set()) log::info(error.sentence + ".");
}

}  // namespace papaya::weak
