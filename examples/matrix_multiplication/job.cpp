#include "job.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>

#include "../common/free_memory.hpp"

namespace matrix_multiplication {

namespace {

MPI_Comm communicator_of_node() {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  return node;
}

// Cores that the ranks of this node may run on, at most one for each rank.
int cores_of_node(MPI_Comm node) {
  cpu_set_t mine;
  cpu_set_t all;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof mine, &mine);
  MPI_Allreduce(&mine, &all, sizeof mine, MPI_BYTE, MPI_BOR, node);
  int ranks = 1;
  MPI_Comm_size(node, &ranks);
  return std::clamp(CPU_COUNT(&all), 1, ranks);
}

}  // namespace

void abort_job(const std::string& sentence) {
  examples::abort_job("matrix_multiplication", sentence);
}

double clock_seconds() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Job Job::world() {
  Job job;
  MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
  MPI_Comm node = communicator_of_node();
  int rank_of_node = 0;
  MPI_Comm_rank(node, &rank_of_node);
  const int cores = cores_of_node(node);
  const int counted = rank_of_node == 0 ? cores : 0;
  MPI_Allreduce(&counted, &job.cores, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Comm_free(&node);
  return job;
}

void Job::need_memory(std::uint64_t bytes) const {
  MPI_Comm node = communicator_of_node();
  std::uint64_t all = 0;
  MPI_Allreduce(&bytes, &all, 1, MPI_UINT64_T, MPI_SUM, node);
  MPI_Comm_free(&node);
  together([&] {
    const std::optional<std::uint64_t> available = examples::free_memory();
    if (available && all > *available)
      throw Problem(
          fmt::format("The matrices and buffers of a node's ranks need {:.1f} GB; {:.1f} GB are free there. "
                      "Multiply smaller matrices, or use more nodes.",
                      static_cast<double>(all) / 1e9, static_cast<double>(*available) / 1e9));
  });
}

double Job::largest(double mine) const {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

double Job::sum(double mine) const {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

}  // namespace matrix_multiplication
