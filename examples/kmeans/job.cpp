#include "job.hpp"

namespace kmeans {

Job Job::world() {
  Job job;
  MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, job.rank, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &job.ranks_of_node);
  MPI_Comm_free(&node);
  return job;
}

}  // namespace kmeans
