// Reports who is missing when a rank has waited too long inside one of papaya's algorithms.
#pragma once

namespace papaya {

// A wait::Stalled; `prepared` is the algorithm's Prepared that waits, or nonblocking::waiting for what MPI_Wait and the
// like wait for. Of blocking calls only where they are not recorded: else watch.cpp sees them, and those inside MPI.
bool report_stall(void* prepared, double seconds);

}  // namespace papaya
