#include "interpose/mpi_agreement.hpp"

#include <sched.h>

namespace papaya {

void MpiAgreement::begin_from_first(void* data, int bytes) noexcept {
  if (way_ == Way::waiting)
    PMPI_Bcast(data, bytes, MPI_BYTE, 0, comm_);
  else
    PMPI_Ibcast(data, bytes, MPI_BYTE, 0, comm_, &request_);
}

void MpiAgreement::begin_least(const int& mine, int& all) noexcept {
  if (way_ == Way::waiting)
    PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm_);
  else
    begin_least_while_connecting(mine, all);
}

void MpiAgreement::begin_least_while_connecting(const int& mine, int& all) noexcept {
  PMPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm_, &request_);
}

void MpiAgreement::begin_gather(const std::int64_t& mine, std::int64_t* all) noexcept {
  if (way_ == Way::waiting)
    PMPI_Allgather(&mine, 1, MPI_INT64_T, all, 1, MPI_INT64_T, comm_);
  else
    PMPI_Iallgather(&mine, 1, MPI_INT64_T, all, 1, MPI_INT64_T, comm_, &request_);
}

bool MpiAgreement::is_ended() noexcept {
  if (request_ == MPI_REQUEST_NULL) return true;
  // If it fails, the wire's users will hear of it.
  if (transport_ != nullptr) transport_->progress_connections();
  int flag = 0;
  return PMPI_Test(&request_, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag != 0;
}

// Other ranks may need this one's MPI.
void MpiAgreement::pause() noexcept {
  int found = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world_, &found, MPI_STATUS_IGNORE);
  sched_yield();
}

}  // namespace papaya
