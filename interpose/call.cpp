#include "interpose/call.hpp"

namespace papaya {

namespace {

Signature signature_of(const Arguments& a, Described& described) noexcept {
  using Operation = Signature::Operation;
  if (a.collective == Collective::barrier || a.collective == Collective::alltoallv) return {};
  if (!reduces(a.collective)) {
    const std::int64_t element = element_bytes_of(a.type);
    if (element > 0) described.dense = is_dense(a.type);
    return {.element_bytes = element};
  }
  Reduction& reduction = described.reduction;
  if (!describe(a.type, a.op, reduction, described.context)) return {.operation = Operation::unsuitable};
  described.dense = reduction.by_table ? padded_pair(a.type, reduction.element_bytes).bytes == 0 : is_dense(a.type);
  return {.element_bytes = static_cast<std::int64_t>(reduction.element_bytes),
          .operation = reduction.by_table ? Operation::predefined : Operation::user,
          .commutative = reduction.commutative,
          .exact = reduction.exact};
}

}  // namespace

// Hints are for blocking calls.
const tuning::Selection& selection_for(const Job& job, const Communicator& state, Collective collective,
                                       Form form) noexcept {
  if (state.hints == nullptr || form != Form::blocking) return job.selection;
  return state.hints->texts[index_of(selected_with(collective))].empty() ? job.selection : state.hints->selection;
}

Decision decide(const Job& job, const Communicator& state, const Arguments& a, Form form, bool is_named,
                Described& described, const tuning::Learnt& learnt) noexcept {
  const CommunicatorFacts facts = facts_of(state, learnt);
  const CallShape call = shape_of(a, form, is_named);
  if (const Reason reason = excluded(facts, call); reason != Reason::none) return {.choice = {.reason = reason}};
  return decide(selection_for(job, state, a.collective, form), facts, call, signature_of(a, described));
}

Decision decide(const Job& job, const Communicator& state, const CallShape& call, const Signature& signature,
                const tuning::Learnt& learnt) noexcept {
  return decide(selection_for(job, state, call.collective, call.form), facts_of(state, learnt), call, signature);
}

}  // namespace papaya
