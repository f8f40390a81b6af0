#include "interpose/approx_sites.hpp"

#include "interpose/copy_communicator.hpp"

namespace papaya::approx {

SiteAgreement::SiteAgreement(MPI_Comm comm) noexcept {
  if (copy_communicator(comm, &comm_)) PMPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
}

bool SiteAgreement::Answer::is_there() noexcept {
  if (request == MPI_REQUEST_NULL) return true;
  int flag = 0;
  return PMPI_Test(&request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag != 0;
}

void SiteAgreement::tell(bool is_named) {
  Answer& answer = answers_.emplace_back();
  answer.mine = is_named ? 1 : 0;
  PMPI_Iallreduce(&answer.mine, &answer.all, 1, MPI_INT, MPI_MAX, comm_, &answer.request);
}

// But for the present call's.
void SiteAgreement::drop_answered() noexcept {
  while (!answers_.empty() && answers_.front().is_there() && answers_.size() > 1) answers_.pop_front();
}

bool SiteAgreement::end() noexcept {
  while (!answers_.empty() && answers_.front().is_there()) answers_.pop_front();
  if (!answers_.empty()) return false;
  PMPI_Comm_free(&comm_);
  return true;
}

}  // namespace papaya::approx
