// What messages call a communicator and the ranks that one waits for.
#pragma once

#include <mpi.h>

#include <string>

#include "algorithms/algorithm.hpp"

namespace papaya {

// "forces (4 ranks)"
std::string text_of(MPI_Comm comm);
// "2, 5": the ranks that `waiting` waits for, of `size`; the first 16 of `count`.
std::string missing_ranks(const Prepared& waiting, int size, int& count);

}  // namespace papaya
