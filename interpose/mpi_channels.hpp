// Messages by MPI for ranks that are ahead of others.
#pragma once

#include <mpi.h>

#include <vector>

#include "interpose/job.hpp"
#include "interpose/resources.hpp"

namespace papaya {

class MpiChannels final : public MessageChannels {
 public:
  // `between_nodes` is papaya's own copy of MPI_COMM_WORLD; null: nothing is sent between nodes.
  void open(const Job& job, MPI_Comm between_nodes);

  std::unique_ptr<Messages> on_node(const std::vector<int>& members, std::vector<int> tags) override;
  std::unique_ptr<Messages> between_nodes(const std::vector<int>& members, std::vector<int> tags) override;
  int largest_tag() const noexcept override { return largest_tag_; }

 private:
  MPI_Comm node_ = MPI_COMM_NULL;
  MPI_Comm between_nodes_ = MPI_COMM_NULL;
  std::vector<int> rank_on_node_;  // by rank in MPI_COMM_WORLD, of this node's ranks
  int largest_tag_ = -1;
};

}  // namespace papaya
