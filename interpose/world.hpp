// All processes of the job, by which ranks are numbered: those of MPI_COMM_WORLD; in a program that begins
// with sessions and without MPI_Init, those of the process set mpi://WORLD, which has them in the same order.
#pragma once

#include <mpi.h>

namespace papaya::world {

// A communicator of all of them. Nobody calls it before the job is known.
MPI_Comm comm() noexcept;
bool is_of_sessions() noexcept;

// Papaya's own communicator of them. Collective. With sessions comm() is this one from then on: that of the program
// may be freed before the job ends.
bool copy(MPI_Comm* copy) noexcept;

// A session's communicator has been made and MPI_Init has not been called: true, and comm() is `comm`, if it has all
// processes in their order. The processes keep a session of papaya's own then, so that the job does not depend on how
// long one of the program's lasts.
bool take(MPI_Comm comm) noexcept;
// Ends papaya's session, once what was made by it is freed.
void leave() noexcept;

}  // namespace papaya::world
