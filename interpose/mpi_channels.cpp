#include "interpose/mpi_channels.hpp"

#include <memory>
#include <utility>

#include "algorithms/transport/mpi/team_messages.hpp"

namespace papaya {

void MpiChannels::open(const Job& job, const BetweenNodes& between_nodes) {
  node_ = job.node_comm;
  between_nodes_ = &between_nodes;
  // The node's communicator has its ranks in the order of MPI_COMM_WORLD.
  rank_on_node_.resize(job.node_of.size());
  int next = 0;
  for (std::size_t rank = 0; rank < job.node_of.size(); ++rank)
    if (job.node_of[rank] == job.node) rank_on_node_[rank] = next++;
}

std::unique_ptr<Messages> MpiChannels::on_node(const std::vector<int>& members, std::vector<int> tags) {
  std::vector<int> ranks;
  for (const int member : members) ranks.push_back(rank_on_node_[static_cast<std::size_t>(member)]);
  return std::make_unique<TeamMessages>(node_, std::move(ranks), std::move(tags));
}

std::unique_ptr<Messages> MpiChannels::between_nodes(const std::vector<int>& members, std::vector<int> tags) {
  return std::make_unique<TeamMessages>(between_nodes_->comm(), members, std::move(tags));
}

}  // namespace papaya
