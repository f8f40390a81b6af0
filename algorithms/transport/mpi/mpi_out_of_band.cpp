#include "algorithms/transport/mpi/mpi_out_of_band.hpp"

#include <algorithm>
#include <ctime>

namespace papaya {

namespace {

int rank_in(MPI_Comm comm) noexcept {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return rank;
}
int ranks_of(MPI_Comm comm) noexcept {
  int ranks = 1;
  PMPI_Comm_size(comm, &ranks);
  return ranks;
}

}  // namespace

bool wait_asleep(MPI_Request& request) noexcept {
  constexpr long longest_nap_ns = 1'000'000;
  timespec nap{0, 50'000};
  for (int done = 0;;) {
    if (PMPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (done != 0) return true;
    nanosleep(&nap, nullptr);
    nap.tv_nsec = std::min(2 * nap.tv_nsec, longest_nap_ns);
  }
}

MpiOutOfBand::MpiOutOfBand(MPI_Comm comm) noexcept : OutOfBand(rank_in(comm), ranks_of(comm)), comm_(comm) {}

void MpiOutOfBand::meet() noexcept {
  if (ranks() == 1) return;  // MPICH 4.0 cannot complete a request of a process alone that has sessions
  MPI_Request request = MPI_REQUEST_NULL;
  if (PMPI_Ibarrier(comm_, &request) == MPI_SUCCESS) wait_asleep(request);
}

void MpiOutOfBand::broadcast(void* data, std::size_t bytes) noexcept {
  PMPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, 0, comm_);
}

void MpiOutOfBand::gather(const void* mine, std::size_t bytes, void* all) noexcept {
  const auto count = static_cast<int>(bytes);
  PMPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, comm_);
}

}  // namespace papaya
