// Hints: selections that hold on one communicator, by the info keys papaya_allreduce and its like. MPI leaves it to the
// program to give the same value on all ranks; the ranks find out whether it has, since they must decide alike.
#pragma once

#include <mpi.h>

#include "interpose/communicator.hpp"

namespace papaya::hints {

// The key of a collective; null if it has none.
const char* key_of(Collective collective) noexcept;

// Collective over the communicator, of which it takes what `info` (or MPI_INFO_NULL) says. Keys that it does not name
// stay as they are.
void take(Communicator& state, MPI_Info info) noexcept;

// Puts the hints that are in force into what MPI has said about the communicator.
void tell(const Communicator& state, MPI_Info info) noexcept;

// A copy of the communicator by MPI_Comm_dup: its hints go with it where the MPI is older than 4.0, as MPI's own do.
void inherit(const Communicator& parent, Communicator& child) noexcept;

}  // namespace papaya::hints
