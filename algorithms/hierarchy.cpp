#include "algorithms/hierarchy.hpp"

#include <algorithm>
#include <vector>

namespace papaya {

namespace {

std::vector<std::int64_t> defaults_of(const Descriptor& algorithm) {
  std::vector<std::int64_t> values;
  for (const Parameter& parameter : algorithm.parameters) values.push_back(parameter.fallback);
  return values;
}

}  // namespace

const Descriptor& NodePhase::algorithm_for(const Choice& choice) noexcept {
  const Descriptor* best = nullptr;
  for (const Descriptor* one : registry())
    if (one->collective == choice.collective && one->is_node_phase && one->max_bytes >= choice.capacity &&
        (best == nullptr || one->max_bytes < best->max_bytes))
      best = one;
  return *best;
}

std::size_t NodePhase::region_bytes(const Choice& choice, int node_ranks) {
  const Descriptor& algorithm = algorithm_for(choice);
  constexpr std::size_t page_bytes = 4096;
  return node_ranks == 1
             ? 0
             : (algorithm.region_bytes(node_ranks, choice.capacity, defaults_of(algorithm)) + page_bytes - 1) /
                   page_bytes * page_bytes;
}

NodePhase::NodePhase(const Team& team, const Choice& choice, std::byte* region, const Prepared* whole) {
  const NodePosition position(team);
  if (position.ranks().size() == 1) return;
  Team node = team;
  node.rank = position.rank;
  node.size = static_cast<int>(position.ranks().size());
  node.region = region;
  node.locations = {};
  node.wire = nullptr;
  node.deposits = nullptr;  // a phase cannot decline
  node.nodes = nullptr;
  node.messages = team.node_messages;
  node.node_messages = nullptr;
  const Descriptor& algorithm = algorithm_for(choice);
  prepared_ = algorithm.prepare(node, choice.capacity, defaults_of(algorithm));
  prepared_->phase_of = whole;
}

NodePosition::NodePosition(const Team& team)
    : nodes(*team.nodes), node(nodes.of_rank[static_cast<std::size_t>(team.rank)]), rank(rank_in_node(team.rank)) {}

int NodePosition::rank_in_node(int rank_of_team) const noexcept {
  const std::vector<int>& all =
      nodes.ranks[static_cast<std::size_t>(nodes.of_rank[static_cast<std::size_t>(rank_of_team)])];
  return static_cast<int>(std::lower_bound(all.begin(), all.end(), rank_of_team) - all.begin());
}

Operands chunk_of(const Operands& operands, std::size_t first, std::size_t count) noexcept {
  const std::size_t element = operands.reduction->element_bytes;
  Operands chunk = operands;
  chunk.send = static_cast<const std::byte*>(operands.send) + first * element;
  chunk.receive = static_cast<std::byte*>(operands.receive) + first * element;
  chunk.count = count;
  chunk.bytes = count * element;
  chunk.root = 0;
  if (first != 0) chunk.deposited = nullptr;
  return chunk;
}

int most_leaders(const Nodes& nodes, std::int64_t wanted) noexcept {
  std::size_t least = nodes.of_rank.size();
  for (const std::vector<int>& ranks : nodes.ranks) least = std::min(least, ranks.size());
  if (wanted != 0) least = std::min(least, static_cast<std::size_t>(wanted));
  return static_cast<int>(least);
}

std::vector<int> lowest_ranks(const Nodes& nodes) {
  std::vector<int> lowest;
  for (const std::vector<int>& ranks : nodes.ranks) lowest.push_back(ranks.front());
  return lowest;
}

}  // namespace papaya
