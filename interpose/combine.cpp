#include "interpose/combine.hpp"

#include <algorithm>

#include "interpose/ready_plan.hpp"

namespace papaya {

namespace {

// A chunk of the numbers, for which the algorithm is chosen.
constexpr std::size_t chunk = 512;
constexpr std::size_t chunk_bytes = chunk * sizeof(std::int64_t);

// By the built-in table alone: what the user has selected is for the program's calls.
const tuning::Rule* rule_for(const Communicator& state) noexcept {
  static const auto& table = *new tuning::Selection;  // never destroyed: calls may come from exit handlers
  tuning::Facts facts = state.facts;
  facts.predefined = true;
  return facts.nodes == 1 ? table.choose(Collective::allreduce, chunk_bytes, facts).rule : nullptr;
}

}  // namespace

Combine::Combine(Communicator& state, const CallFacts& facts, const Outcome& outcome) noexcept : state_(state) {
  const tuning::Rule* const rule = rule_for(state);
  if (rule == nullptr) return;
  Outcome of_set_up = outcome;
  plan_ = ready_plan(state, {.rule = rule, .at_once = true, .automatic = true}, chunk_bytes, facts, of_set_up);
}

std::vector<std::int64_t> Combine::operator()(const std::vector<std::int64_t>& mine, MPI_Op op) const {
  return combined(mine, MPI_INT64_T, op);
}

std::vector<std::uint64_t> Combine::operator()(const std::vector<std::uint64_t>& mine, MPI_Op op) const {
  return combined(mine, MPI_UINT64_T, op);
}

template <class Number>
std::vector<Number> Combine::combined(const std::vector<Number>& mine, MPI_Datatype type, MPI_Op op) const {
  static_assert(sizeof(Number) * chunk == chunk_bytes);
  std::vector<Number> all(mine.size());
  Reduction reduction{};
  ReductionContext context{};
  const bool by_plan = plan_ != nullptr && describe(type, op, reduction, context);
  for (std::size_t begin = 0; begin < mine.size(); begin += chunk) {
    const std::size_t count = std::min(chunk, mine.size() - begin);
    if (by_plan) {
      plan_->collective = Collective::allreduce;
      const Operands operands{.send = mine.data() + begin,
                              .receive = all.data() + begin,
                              .count = count,
                              .bytes = count * sizeof(Number),
                              .root = -1,
                              .reduction = &reduction};
      if (plan_->prepared->run(operands, state_.site_of(plan_))) continue;
    }
    PMPI_Allreduce(mine.data() + begin, all.data() + begin, static_cast<int>(count), type, op, state_.handle);
  }
  return all;
}

bool combines_by(const Communicator& state, const tuning::Rule& rule) noexcept {
  return rule_for(state) == &rule;
}

}  // namespace papaya
