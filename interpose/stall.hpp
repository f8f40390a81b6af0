// Reports who is missing when a rank has waited too long inside one of papaya's algorithms.
#pragma once

namespace papaya {

// Each a wait::Stalled; `prepared` is the algorithm's Prepared that waits, or nonblocking::waiting for what MPI_Wait
// and the like wait for. Where calls are recorded, watch.cpp sees blocking ones, and those inside MPI: then only the
// second.
bool report_stall(void* prepared, double seconds);
bool report_nonblocking_stall(void* prepared, double seconds);

}  // namespace papaya
