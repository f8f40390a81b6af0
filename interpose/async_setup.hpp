// The set-up of a plan for a collective whose ranks may leave a call before the others come to it (bcast, reduce): no
// rank waits for another. The first that comes to it takes shared memory under a key that all ranks compute alike, the
// others find it there, and they agree in that memory on the call from which the algorithm serves
// (algorithms/waiting/switch_over.hpp). Until then calls go to MPI.
#pragma once

#include <cstdint>

#include "base/reason.hpp"
#include "interpose/plan.hpp"

namespace papaya {

// One step at each call that `plan` would serve: `call` counts them. `communicator` is the same number on all its
// ranks, and no other's. Reason::none: the plan can run from this call on; else why this call goes to MPI, which is
// plan.failure if all later ones do so too.
Reason join(std::uint64_t communicator, const Members& members, Plan& plan, std::uint64_t call) noexcept;

}  // namespace papaya
