// Says who is missing when a rank has waited too long inside one of papaya's algorithms.
#pragma once

namespace papaya {

// A wait::Stalled; `prepared` is the algorithm's Prepared that waits.
void report_stall(void* prepared, double seconds);

}  // namespace papaya
