#include "interpose/decide.hpp"

#include "base/saturating.hpp"

namespace papaya {

namespace {

// Of datatype and operation.
Reason excluded_by(const Signature& signature, const CallShape& call) noexcept {
  if (call.collective == Collective::barrier) return Reason::none;
  if (reduces(call.collective)) {
    if (signature.operation == Signature::Operation::unsuitable) return Reason::unsuitable_operation;
    // The program may free it before the call has ended.
    if (call.form == Form::nonblocking && signature.operation == Signature::Operation::user)
      return Reason::pending_operation;
    return Reason::none;
  }
  if (signature.element_bytes < 0) return Reason::arguments;
  return signature.element_bytes == 0 ? Reason::no_data : Reason::none;
}

Decision native(Reason reason) noexcept {
  return {.choice = {.reason = reason}};
}

tuning::Choice unless_dropped(const tuning::Choice& choice, const CommunicatorFacts& communicator) noexcept {
  if (choice.rule == nullptr || !is_dropped(communicator, *choice.rule->algorithm)) return choice;
  return {.reason = Reason::differs, .automatic = choice.automatic};
}

// Larger ones go through the window twice, while an MPI may read them where they are (docs/architecture/limits.md).
constexpr std::uint64_t most_gathered_by_table = 128 << 10;

// An allgatherv goes by the mean of its blocks, as an allgather of as many bytes.
tuning::Choice choose(const tuning::Selection& selection, const CallShape& call, std::uint64_t bytes,
                      const tuning::Facts& facts) noexcept {
  if (call.collective != Collective::allgatherv) return selection.choose(call.collective, bytes, facts, call.form);
  const auto ranks = static_cast<std::uint64_t>(facts.ranks);
  const std::uint64_t mean = (bytes + ranks - 1) / ranks;
  const tuning::Choice choice = selection.choose(Collective::allgather, mean, facts, call.form);
  if (choice.rule != nullptr && choice.automatic && !choice.of_file && mean > most_gathered_by_table)
    return {.reason = Reason::table, .automatic = true};
  if (choice.rule == nullptr || serves(*choice.rule->algorithm, call.collective)) return choice;
  return {.reason = Reason::no_algorithm};
}

}  // namespace

Decision decide(const tuning::Selection& selection, const CommunicatorFacts& communicator, const CallShape& call,
                const Signature& signature) noexcept {
  if (const Reason reason = excluded(communicator, call); reason != Reason::none) return native(reason);
  if (call.collective == Collective::alltoallv)
    return {.choice =
                unless_dropped(selection.choose_for_any_size(Collective::alltoall, call.collective, communicator.facts),
                               communicator)};
  if (const Reason reason = excluded_by(signature, call); reason != Reason::none) return native(reason);
  const bool is_barrier = call.collective == Collective::barrier;
  const std::uint64_t element = is_barrier ? 0 : static_cast<std::uint64_t>(signature.element_bytes);
  const std::uint64_t bytes = is_barrier ? 0 : saturating::product(static_cast<std::uint64_t>(call.count), element);
  if (bytes > largest_message) return native(Reason::too_large);

  const bool is_reduction = reduces(call.collective);
  tuning::Facts facts = communicator.facts;
  facts.predefined = !is_reduction || signature.operation == Signature::Operation::predefined;
  facts.may_reorder =
      communicator.arrival_order && call.form == Form::blocking && (!is_reduction || signature.commutative);
  Decision decision{.choice = unless_dropped(choose(selection, call, bytes, facts), communicator),
                    .bytes = bytes,
                    .is_exact = signature.exact};
  const bool meets = call.form == Form::blocking && is_meeting(call.collective);
  decision.sets_up_due_plans = communicator.has_due_plans && meets;
  decision.agrees_on_verdicts = communicator.has_verdicts && meets;
  decision.may_be_tried = decision.choice.automatic && call.form == Form::blocking && facts.predefined &&
                          call.collective != Collective::allgatherv && !communicator.arrival_order;
  if (decision.choice.rule != nullptr && is_reduction && element > decision.choice.rule->algorithm->max_element_bytes) {
    decision.choice = {.reason = Reason::too_large};
    decision.may_be_tried = false;
  }
  return decision;
}

Next next_step(const tuning::Choice& choice, Form form, int nodes, const PlanFacts& plan) noexcept {
  if (plan.is_ready) return {Step::run, Reason::none};
  if (plan.failure != Reason::none) return {Step::go_native, plan.failure};
  // On papaya's own copy, and no rank waits in the call.
  if (form == Form::nonblocking) return {Step::set_up, Reason::none};
  if (!choice.forced && !choice.at_once && plan.calls_before < calls_before_setup)
    return {Step::go_native, Reason::few_calls};
  if (!is_rooted(choice.rule->algorithm->collective)) return {Step::set_up, Reason::none};
  return nodes == 1 ? Next{Step::join, Reason::few_calls} : Next{Step::postpone, Reason::not_met};
}

}  // namespace papaya
