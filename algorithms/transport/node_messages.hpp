// Messages by MPI, on a communicator of papaya's own that holds all ranks of the team.
#pragma once

#include <mpi.h>

#include <vector>

#include "algorithms/transport/messages.hpp"

namespace papaya {

class NodeMessages final : public Messages {
 public:
  // `tag` tells the team from others on `comm`. `ranks`: of the team's members in `comm`.
  NodeMessages(MPI_Comm comm, int tag, std::vector<int> ranks) : comm_(comm), tag_(tag), ranks_(std::move(ranks)) {}

  void send(int to, const void* data, std::size_t bytes) noexcept override;
  void receive(int from, void* data, std::size_t bytes) noexcept override;

 private:
  const MPI_Comm comm_;
  const int tag_;
  const std::vector<int> ranks_;
};

}  // namespace papaya
