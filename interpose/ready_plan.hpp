// Which plan of its communicator serves a blocking call, and the set-up of one where it is due.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/call.hpp"

namespace papaya {

// For `choice`, which has a rule, and messages of `bytes`. Null, with the reason, while or because none can run: the
// call goes to MPI then, on all ranks.
Plan* ready_plan(Communicator& state, const tuning::Choice& choice, std::size_t bytes, const CallFacts& facts,
                 Outcome& outcome) noexcept;

// What the set-ups of this process have taken it on average, waiting for other ranks included: on one node, or across
// nodes. Negative: there was none.
std::int64_t mean_set_up_ns(bool across_nodes) noexcept;

// In a call that no rank leaves early. Which plans are due depends on the calls before it, which are the same on all
// ranks.
void set_up_due_plans(Communicator& state, const CallFacts& facts, Outcome& outcome) noexcept;

}  // namespace papaya
