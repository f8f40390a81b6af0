// The creation of a collective: what all ranks have to agree on.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <new>

#include "api/instance.hpp"
#include "base/log.hpp"
#include "interpose/copy_communicator.hpp"
#include "interpose/mpi_types.hpp"

namespace papaya::weak {

namespace {

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
  const bool has_slack = std::none_of(wish.values.begin(), wish.values.end(), [](const Wish::Value& one) {
    return one.parameter == "slack" && one.value == 0;
  });
  if (!choose(wish.collective, wish.algorithm == nullptr ? "" : wish.algorithm,
              {.bytes = request_.bytes(), .has_slack = has_slack}, choice_, problem))
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

// A rank that has found an error has no facts to compare.
void Instance::put_facts(const Wish& wish, Terms& terms) const {
  terms.put(2 * static_cast<std::int64_t>(wish.collective) + (wish.accumulates ? 1 : 0));
  terms.put(std::find(weak_registry().begin(), weak_registry().end(), choice_.algorithm) - weak_registry().begin());
  terms.put(wish.count);
  terms.put(static_cast<std::int64_t>(request_.element_bytes));
  terms.put(number_of(wish.op));
  terms.put(wish.root);
  terms.put(std::llround(wish.share * 1e15));
  const std::size_t left = Terms::most_facts - terms.facts().size();
  for (std::size_t i = 0; i < std::min(choice_.values.size(), left); ++i) terms.put(choice_.values[i]);
}

Error Instance::compare(const Terms& terms) const {
  if (!terms.is_same_version)
    return {MPI_ERR_OTHER, "the ranks have different versions of papaya; install one on all nodes"};
  const std::span<const Terms::Range> ranges = terms.facts();
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto [lowest, highest] = ranges[i];
    if (lowest == highest) continue;
    const bool is_value = i >= facts.size();
    const std::string_view name = is_value ? choice_.algorithm->parameters[i - facts.size()].name : facts[i].name;
    return {is_value ? MPI_ERR_ARG : facts[i].code,
            fmt::format("{} differs between the ranks of the communicator{}", name,
                        is_value || facts[i].is_number ? fmt::format(": {} to {}", lowest, highest) : "")};
  }
  return {};
}

Error Instance::prepare(const Wish& wish, Settings& settings) {
  prepare_process();
  const Error found = check(wish);
  Terms terms;
  terms.is_good = !found.is_set();
  if (terms.is_good) put_facts(wish, terms);
  meeting_->agree(terms, settings);
  birth_ = terms.birth;
  if (!terms.is_good && terms.is_same_version) return meeting_->agree(found);
  if (const Error error = compare(terms); error.is_set()) return error;
  return settle(wish);
}

Error Instance::settle(const Wish& wish) {
  const WeakDescriptor& algorithm = *choice_.algorithm;
  const bool has_region = algorithm.region_bytes != nullptr;
  const bool is_shared = meeting_->is_on_one_node();
  if (!is_shared && algorithm.segment == nullptr)
    return {MPI_ERR_COMM, fmt::format("{} needs all ranks of the communicator on one node", algorithm.name)};
  if (!is_shared && has_region) request_.nodes = &meeting_->find_nodes();
  const SegmentShape shape = algorithm.segment != nullptr ? algorithm.segment(request_) : SegmentShape{64, 1};
  const std::size_t region_bytes = has_region ? algorithm.region_bytes(request_) : 0;
  const Error no_room{
      MPI_ERR_NO_MEM,
      fmt::format("there is no room in /dev/shm for {} bytes of shared memory, a quarter of what is free "
                  "there; free some, or choose an algorithm that needs none",
                  region_bytes)};
  const Error no_memory{MPI_ERR_NO_MEM,
                        "a rank has too little memory; create it for fewer elements or with less slack"};
  if (is_shared) {
    // How far a rank has come, and all with it.
    enum Outcome : int { not_shared, lacks_memory, done };
    Outcome mine = not_shared;
    if (meeting_->share_memory(shape, region_bytes)) mine = make_algorithm(wish) ? done : lacks_memory;
    const int all = meeting_->least(mine);
    meeting_->forget_name();
    if (all == done) return {};
    algorithm_.reset();
    if (all == lacks_memory) return no_memory;
    if (has_region) return no_room;
  }
  if (!is_shared && region_bytes != 0 && meeting_->least(meeting_->share_region(region_bytes) ? 1 : 0) == 0)
    return no_room;
  if (const Error error = meeting_->connect(shape); error.is_set()) return error;
  return meeting_->least(make_algorithm(wish) ? 1 : 0) != 0 ? Error{} : no_memory;
}

bool Instance::make_algorithm(const Wish& wish) {
  try {
    algorithm_ = choice_.algorithm->prepare(meeting_->team(), request_);
    const auto slack = std::find_if(wish.values.begin(), wish.values.end(),
                                    [](const Wish::Value& one) { return one.parameter == "slack"; });
    if (wish.accumulates)
      total_ = std::make_unique<RunningTotal>(request_.count, reduction_, static_cast<std::uint64_t>(slack->value));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

std::unique_ptr<Instance> Instance::create(MPI_Comm comm, const Wish& wish, Error& error) {
  MPI_Comm copy = MPI_COMM_NULL;
  if (!copy_communicator(comm, &copy)) {
    error = {MPI_ERR_COMM, "MPI cannot copy the communicator"};
    return nullptr;
  }
  PMPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
  std::unique_ptr<Instance> self(new Instance);
  self->meeting_ = std::make_unique<Meeting>(copy);
  Settings settings = settings_of_process(self->meeting_->rank());
  error = self->prepare(wish, settings);
  if (error.is_set()) return nullptr;
  PMPI_Comm_get_errhandler(comm, &self->handler_);
  enter(*self);
  self->is_entered_ = true;
  self->record(comm, wish);
  return self;
}

std::string Instance::parameters() const {
  const WeakDescriptor& algorithm = *choice_.algorithm;
  std::string text =
      request_.share < 1 && has_root(algorithm.collective) ? fmt::format("share={:g}", request_.share) : "";
  for (std::size_t i = 0; i < choice_.values.size(); ++i)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", algorithm.parameters[i].name,
                        algorithm_->in_force(i, choice_.values[i]));
  return text;
}

std::string Instance::info() const {
  const std::string values = parameters();
  return fmt::format("{}{}{} over {}", choice_.algorithm->name, values.empty() ? "" : ":", values, meeting_->place());
}

void Instance::record(MPI_Comm comm, const Wish& wish) {
  const std::string collective = wish.accumulates ? "ssp_accumulate" : std::string(name_of(wish.collective));
  char communicator[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  PMPI_Comm_get_name(comm, communicator, &length);
  name_ = fmt::format("{} ({}) on {}", collective, choice_.algorithm->name,
                      *communicator != '\0' ? communicator : fmt::format("a communicator of {} ranks", request_.ranks));
  recording_.open(comm, collective, std::string(choice_.algorithm->name), parameters(), request_.bytes(), wish.root);
}

}  // namespace papaya::weak
