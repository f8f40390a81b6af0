#include "interpose/copy_communicator.hpp"

namespace papaya {

// MPI_Comm_dup calls attribute callbacks. So does not MPI_Comm_create, but in Open MPI both agree on the context id by
// nonblocking collectives on the parent, and the 24th and 25th of those on a communicator have the tags by which
// MPI_Dist_graph_create receives from any rank: a call of papaya's would move that collision to where the program has
// none by itself. MPI_Comm_create_group sends messages with the caller's tag. When it returns this rank has received
// all of them.
bool copy_communicator(MPI_Comm comm, MPI_Comm* copy) noexcept {
  constexpr int copy_tag = 12211;  // not that of the census, and few programs use it
  MPI_Group group = MPI_GROUP_NULL;
  if (PMPI_Comm_group(comm, &group) != MPI_SUCCESS) return false;
  const bool good = PMPI_Comm_create_group(comm, group, copy_tag, copy) == MPI_SUCCESS;
  PMPI_Group_free(&group);
  return good;
}

}  // namespace papaya
