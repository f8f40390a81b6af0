#include "algorithms/transport/node_messages.hpp"

namespace papaya {

// What fails here cannot be told the program, whose data it is: the job ends, as it does where MPI's own collective fails
// without an error handler.
void NodeMessages::send(int to, const void* data, std::size_t bytes) noexcept {
  const int rank = ranks_[static_cast<std::size_t>(to)];
  if (PMPI_Send(data, static_cast<int>(bytes), MPI_BYTE, rank, tag_, comm_) != MPI_SUCCESS) PMPI_Abort(MPI_COMM_WORLD, 1);
}

void NodeMessages::receive(int from, void* data, std::size_t bytes) noexcept {
  const int rank = ranks_[static_cast<std::size_t>(from)];
  if (PMPI_Recv(data, static_cast<int>(bytes), MPI_BYTE, rank, tag_, comm_, MPI_STATUS_IGNORE) != MPI_SUCCESS)
    PMPI_Abort(MPI_COMM_WORLD, 1);
}

}  // namespace papaya
