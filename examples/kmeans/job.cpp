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

void Job::agree(std::string sentence) const {
  const int mine = sentence.empty() ? ranks : rank;
  int first = ranks;
  MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == ranks) return;
  int length = static_cast<int>(sentence.size());
  MPI_Bcast(&length, 1, MPI_INT, first, MPI_COMM_WORLD);
  sentence.resize(static_cast<std::size_t>(length));
  MPI_Bcast(sentence.data(), length, MPI_CHAR, first, MPI_COMM_WORLD);
  throw CommonProblem(sentence);
}

}  // namespace kmeans
