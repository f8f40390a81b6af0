// A call like the last one of its collective on its communicator, which a program in a loop makes again and again: what
// was decided then holds. Inlined into the wrappers, where the collective is a constant and the arguments stay in
// registers.
#pragma once

#include "interpose/approx.hpp"
#include "interpose/replace.hpp"
#include "interpose/run.hpp"

namespace papaya {

// Runs the call through one of papaya's algorithms. True if it did; false with the reason if it is to go native, which
// every rank decides alike.
[[gnu::always_inline]] inline bool replace(Communicator& state, const Arguments& a, const CallFacts& facts,
                                           Outcome& outcome) noexcept {
  if (approx::may_concern(a.collective) && state.approximates && approx::run(state, a, facts, outcome)) [[unlikely]]
    return true;
  const LastChoice& last = state.last[index_of(a.collective)];
  if ((last.plan != nullptr || last.why != Reason::none) && last.type == a.type && last.op == a.op &&
      last.count == a.count &&
      (reduces(a.collective) || a.collective <= Collective::bcast || a.send == MPI_IN_PLACE ||
       (a.send_type == a.type && a.send_count == own_elements(state, a))) &&
      (!is_rooted(a.collective) || static_cast<unsigned>(a.root) < static_cast<unsigned>(state.size))) {
    outcome.trial = last.trial;
    outcome.root = a.root;
    if (last.why != Reason::none) {
      outcome.reason = last.why;
      return false;
    }
    if (is_erroneous(state, a, true)) {
      outcome.reason = Reason::arguments;
      return false;
    }
    const bool on_device = is_on_device(state, a, facts);
    if (!on_device || !last.plan->through_host)
      return run_in_place(state, *last.plan, last.reduction, last.bytes, on_device, a, facts, outcome);
  }
  return decide_and_replace(state, a, facts, outcome);
}

}  // namespace papaya
