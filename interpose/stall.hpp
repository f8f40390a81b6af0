// Says who is missing when a rank has waited too long inside one of papaya's algorithms.
#pragma once

#include <mpi.h>

#include <string>

#include "algorithms/algorithm.hpp"

namespace papaya {

// A wait::Stalled; `prepared` is the algorithm's Prepared that waits, or nonblocking::waiting for what MPI_Wait and the
// like wait for. Of blocking calls only where they are not recorded: else watch.cpp sees them, and those inside MPI.
bool report_stall(void* prepared, double seconds);

// "forces (4 ranks)"
std::string text_of(MPI_Comm comm);
// "2, 5": the ranks that `waiting` waits for, of `size`; the first 16 of `count`.
std::string missing_ranks(const Prepared& waiting, int size, int& count);

}  // namespace papaya
