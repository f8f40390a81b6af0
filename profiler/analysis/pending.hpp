// Calls that some ranks were inside when the record ended, and where the others were.
#pragma once

#include <vector>

#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/read/clocks.hpp"

namespace papaya::report {

// `call` has ranks inside. `last_sign_ns`: until when there are signs of the job, on node 0's clock.
PendingCall pending_call(const Run& run, const Clocks& clocks, const Matching& matching, const GroupCall& call,
                         double last_sign_ns);

}  // namespace papaya::report
