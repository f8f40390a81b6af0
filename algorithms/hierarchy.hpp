// What the hierarchical algorithms have in common: inside a node the algorithms of one node as phases, between nodes
// one rank of each, its leader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "algorithms/algorithm.hpp"

namespace papaya {

// A collective among the ranks of this rank's node, by an algorithm of one node as it is by default.
class NodePhase {
 public:
  struct Choice {
    Collective collective;
    std::size_t capacity;  // bytes
  };

  // Of those that are phases and take messages of `capacity` bytes, the one with the least limit.
  static const Descriptor& algorithm_for(const Choice& choice) noexcept;

  static std::size_t region_bytes(const Choice& choice, int node_ranks);
  // `team` is the whole one, `region` this phase's part of its region; `whole` the hierarchical algorithm.
  NodePhase(const Team& team, const Choice& choice, std::byte* region, const Prepared* whole);

  // Operands::root is a rank of the node. Where the node has one rank nothing is done.
  void run(const Operands& operands, wait::Site& site) { static_cast<void>(try_to_run(operands, site)); }
  // False, on all ranks of the node alike, if the root of a broadcast was too far ahead of them: then they have nothing
  // yet. That is only where the team has messages on the node.
  bool try_to_run(const Operands& operands, wait::Site& site) {
    if (prepared_ == nullptr) return true;
    is_running_ = true;
    const bool is_done = prepared_->run(operands, site);
    is_running_ = false;
    return is_done;
  }
  bool is_alone() const noexcept { return prepared_ == nullptr; }
  // While it runs: `rank` of the node has not arrived.
  bool is_missing(int rank) const { return is_running_ && prepared_->is_missing(rank); }

 private:
  std::unique_ptr<Prepared> prepared_;
  bool is_running_ = false;
};

// Where a rank stands in a team of several nodes.
struct NodePosition {
  explicit NodePosition(const Team& team);

  const Nodes& nodes;
  int node;
  int rank;  // of the node
  const std::vector<int>& ranks() const noexcept { return nodes.ranks[static_cast<std::size_t>(node)]; }
  int rank_in_node(int rank_of_team) const noexcept;
};

// `count` elements of an allreduce from `first` on, as a phase with the leader as root; only the first chunk tells of a
// deposit.
Operands chunk_of(const Operands& operands, std::size_t first, std::size_t count) noexcept;

// Of each node: as many as `wanted`, or as the smallest node has ranks; 0: the latter.
int most_leaders(const Nodes& nodes, std::int64_t wanted) noexcept;

// The lowest rank of each node.
std::vector<int> lowest_ranks(const Nodes& nodes);

}  // namespace papaya
