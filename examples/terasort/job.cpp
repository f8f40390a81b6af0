#include "job.hpp"

#include <algorithm>

namespace terasort {

void abort_job(const std::string& sentence) {
  examples::abort_job("terasort", sentence);
}

// The first `all % ranks` ranks have one more.
Share share_of(std::uint64_t all, const Job& job) noexcept {
  const auto rank = static_cast<std::uint64_t>(job.rank);
  const auto ranks = static_cast<std::uint64_t>(job.ranks);
  return {rank * (all / ranks) + std::min(rank, all % ranks), all / ranks + (rank < all % ranks ? 1 : 0)};
}

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

}  // namespace terasort
