#include "interpose/agreement.hpp"

namespace papaya {

void Agreement::begin_from_first(void* data, int bytes) noexcept {
  if (way_ == Way::waiting)
    PMPI_Bcast(data, bytes, MPI_BYTE, 0, comm_);
  else
    PMPI_Ibcast(data, bytes, MPI_BYTE, 0, comm_, &request_);
}

void Agreement::begin_least(const int& mine, int& all) noexcept {
  if (way_ == Way::waiting)
    PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm_);
  else
    begin_least_while_connecting(mine, all);
}

void Agreement::begin_least_while_connecting(const int& mine, int& all) noexcept {
  PMPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm_, &request_);
}

void Agreement::begin_gather(const std::int64_t& mine, std::int64_t* all) noexcept {
  if (way_ == Way::waiting)
    PMPI_Allgather(&mine, 1, MPI_INT64_T, all, 1, MPI_INT64_T, comm_);
  else
    PMPI_Iallgather(&mine, 1, MPI_INT64_T, all, 1, MPI_INT64_T, comm_, &request_);
}

bool Agreement::is_ended() noexcept {
  if (request_ == MPI_REQUEST_NULL) return true;
  // If it fails, the wire's users will hear of it.
  if (ucx_.exists()) ucx_.worker().progress();
  int flag = 0;
  return PMPI_Test(&request_, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag != 0;
}

}  // namespace papaya
