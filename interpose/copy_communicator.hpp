// Papaya's own copy of a communicator on which the program has no message under way. Collective. The parent's
// nonblocking collectives are not used, nor its attributes' callbacks.
#pragma once

#include <mpi.h>

namespace papaya {

bool copy_communicator(MPI_Comm comm, MPI_Comm* copy) noexcept;

}  // namespace papaya
