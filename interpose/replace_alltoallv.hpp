// MPI_Alltoallv, whose sizes no rank knows of the others: by the algorithm that the selection has for every size of
// MPI_Alltoall.
#pragma once

#include "interpose/call.hpp"

namespace papaya {

// As decide_and_replace().
bool replace_alltoallv(Communicator& state, const Arguments& arguments, const CallFacts& facts,
                       Outcome& outcome) noexcept;

}  // namespace papaya
