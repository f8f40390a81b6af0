#include "algorithms/transport/mpi/team_messages.hpp"

#include <algorithm>
#include <utility>

namespace papaya {

namespace {

// What fails here cannot be told the program, whose data it is: the job ends, as it does where MPI's own collective
// fails without an error handler.
void check(int code) noexcept {
  if (code != MPI_SUCCESS) PMPI_Abort(MPI_COMM_WORLD, 1);
}

}  // namespace

TeamMessages::TeamMessages(MPI_Comm comm, std::vector<int> ranks, std::vector<int> tags)
    : comm_(comm), ranks_(std::move(ranks)), tags_(std::move(tags)), receives_(ranks_.size(), MPI_REQUEST_NULL) {
  int own = 0;
  PMPI_Comm_rank(comm, &own);
  rank_ = static_cast<int>(std::find(ranks_.begin(), ranks_.end(), own) - ranks_.begin());
  sends_.reserve(ranks_.size());
}

void TeamMessages::send(int to, const void* data, std::size_t bytes) noexcept {
  const auto peer = static_cast<std::size_t>(to);
  check(PMPI_Send(data, static_cast<int>(bytes), MPI_BYTE, ranks_[peer], tags_[peer], comm_));
}

void TeamMessages::receive(int from, void* data, std::size_t bytes) noexcept {
  check(PMPI_Recv(data, static_cast<int>(bytes), MPI_BYTE, ranks_[static_cast<std::size_t>(from)], tag_here(), comm_,
                  MPI_STATUS_IGNORE));
}

void TeamMessages::begin_send(int to, const void* data, std::size_t bytes) noexcept {
  const auto peer = static_cast<std::size_t>(to);
  MPI_Request request = MPI_REQUEST_NULL;
  check(PMPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, ranks_[peer], tags_[peer], comm_, &request));
  int gone = 0;
  check(PMPI_Test(&request, &gone, MPI_STATUS_IGNORE));
  if (gone == 0) sends_.push_back(request);
}

bool TeamMessages::are_sent() noexcept {
  if (sends_.empty()) return true;
  int gone = 0;
  check(PMPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &gone, MPI_STATUSES_IGNORE));
  if (gone != 0) sends_.clear();
  return gone != 0;
}

bool TeamMessages::has_received(int from, void* data, std::size_t room, std::size_t& bytes) noexcept {
  const auto peer = static_cast<std::size_t>(from);
  MPI_Request& request = receives_[peer];
  if (request == MPI_REQUEST_NULL)
    check(PMPI_Irecv(data, static_cast<int>(room), MPI_BYTE, ranks_[peer], tag_here(), comm_, &request));
  int has_come = 0;
  MPI_Status status;
  check(PMPI_Test(&request, &has_come, &status));
  if (has_come == 0) return false;
  int count = 0;
  check(PMPI_Get_count(&status, MPI_BYTE, &count));
  bytes = static_cast<std::size_t>(count);
  return true;
}

}  // namespace papaya
