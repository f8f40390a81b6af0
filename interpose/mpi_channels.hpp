// Messages by MPI for ranks that are ahead of others.
#pragma once

#include <mpi.h>

#include <vector>

#include "interpose/between_nodes.hpp"
#include "interpose/job.hpp"
#include "interpose/resources.hpp"

namespace papaya {

class MpiChannels final : public MessageChannels {
 public:
  // `between_nodes` outlives it.
  void open(const Job& job, const BetweenNodes& between_nodes);

  std::unique_ptr<Messages> on_node(const std::vector<int>& members, std::vector<int> tags) override;
  std::unique_ptr<Messages> between_nodes(const std::vector<int>& members, std::vector<int> tags) override;
  int largest_tag() const noexcept override { return between_nodes_->largest_tag(); }

 private:
  MPI_Comm node_ = MPI_COMM_NULL;
  const BetweenNodes* between_nodes_ = nullptr;
  std::vector<int> rank_on_node_;  // by rank in MPI_COMM_WORLD, of this node's ranks
};

}  // namespace papaya
