// What MPI tells of a communicator.
#pragma once

#include <mpi.h>

#include <vector>

namespace papaya {

// The members of its local group as ranks of `world_group`; -1: outside.
std::vector<int> world_ranks_of(MPI_Comm comm, MPI_Group world_group);

// The neighbours that this rank sends to in neighbourhood collectives; none without a topology.
int destinations_of(MPI_Comm comm);

}  // namespace papaya
