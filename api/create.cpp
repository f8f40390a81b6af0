// The creation of a collective: what all ranks have to agree on.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <new>

#include "api/instance.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "interpose/copy_communicator.hpp"
#include "interpose/mpi_types.hpp"

namespace papaya::weak {

namespace {

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

}  // namespace papaya::weak
