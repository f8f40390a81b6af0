#include "interpose/comm_facts.hpp"

#include <cstddef>

namespace papaya {

std::vector<int> world_ranks_of(MPI_Comm comm, MPI_Group world_group) {
  int size = 0;
  PMPI_Comm_size(comm, &size);
  std::vector<int> mine(static_cast<std::size_t>(size));
  std::vector<int> world(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) mine[static_cast<std::size_t>(i)] = i;
  MPI_Group group = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &group);
  PMPI_Group_translate_ranks(group, size, mine.data(), world_group, world.data());
  PMPI_Group_free(&group);
  for (int& rank : world)
    if (rank == MPI_UNDEFINED) rank = -1;
  return world;
}

int destinations_of(MPI_Comm comm) {
  int topology = MPI_UNDEFINED;
  PMPI_Topo_test(comm, &topology);
  int count = 0;
  if (topology == MPI_CART) {
    PMPI_Cartdim_get(comm, &count);
    return 2 * count;
  }
  if (topology == MPI_GRAPH) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Graph_neighbors_count(comm, rank, &count);
  } else if (topology == MPI_DIST_GRAPH) {
    int sources = 0;
    int is_weighted = 0;
    PMPI_Dist_graph_neighbors_count(comm, &sources, &count, &is_weighted);
  }
  return count;
}

}  // namespace papaya
