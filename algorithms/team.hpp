// The ranks of one communicator and what they have been given to meet in: shared memory on one node, a wire
// elsewhere. A team is used by one thread at a time on each rank (MPI forbids concurrent collectives on one
// communicator).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/transport/single_copy.hpp"
#include "algorithms/waiting/wait.hpp"
#include "base/topology.hpp"

namespace papaya {

class DepositArena;
class Messages;
class Notified;

// Which ranks of a team are on which node. Nodes are numbered by their lowest rank.
struct Nodes {
  std::vector<int> of_rank;
  std::vector<std::vector<int>> ranks;  // of each node, ascending

  int count() const noexcept { return static_cast<int>(ranks.size()); }
};
// `key` is any number of each rank's node.
Nodes nodes_by(std::span<const int> key);

// The ranks of a team as memory is planned for them. Without `nodes` each rank stands for itself.
struct Layout {
  int ranks;
  const Nodes* nodes = nullptr;

  // A rank of each node.
  int leaders() const noexcept { return nodes == nullptr ? ranks : nodes->count(); }
  int largest_node() const noexcept;
};

struct Team {
  int rank;
  int size;
  bool arrival_order;                // PAPAYA_ORDER=arrival: commutative reductions may follow the arrivals
  std::byte* region;                 // shared, zeroed at setup, at the same offset of the node's window on all ranks
  wait::Policy* policy;              // of this process
  ReadMemory read_memory = nullptr;  // null: the kernel does not permit it between all ranks of the node
  // Where each rank runs; outlives the team. Empty: all in one location, or it is not known.
  std::span<const topology::Location> locations = {};
  std::uint64_t first_round = 1;     // the number of its first round or call; tests begin before a wrap-around
  Notified* wire = nullptr;          // for algorithms with a segment; outlives what they prepare
  DepositArena* deposits = nullptr;  // this rank's, for algorithms that may borrow; null: the region has all memory
  std::size_t own_bytes = 0;         // of each rank in the region, for short deposits, in spite of `deposits`
  const Nodes* nodes = nullptr;  // for those with a segment and a region, which is the node's then; outlives them too
  // For ranks that may leave before others come (a bcast's root, a reduce's others) and find no room for their data.
  // Null: they wait until there is. Outlives the team.
  Messages* messages = nullptr;
  Messages* node_messages = nullptr;  // the same among the ranks of this rank's node, where `nodes` says who they are

  Layout layout() const noexcept { return {size, nodes}; }
};

}  // namespace papaya
