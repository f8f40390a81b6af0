#include "algorithms/team.hpp"

#include <map>

namespace papaya {

int Layout::largest_node() const noexcept {
  if (nodes == nullptr) return 1;
  std::size_t largest = 0;
  for (const std::vector<int>& on_node : nodes->ranks) largest = std::max(largest, on_node.size());
  return static_cast<int>(largest);
}

Nodes nodes_by(std::span<const int> key) {
  Nodes nodes;
  std::map<int, int> numbers;
  for (std::size_t rank = 0; rank < key.size(); ++rank) {
    const int node = numbers.emplace(key[rank], nodes.count()).first->second;
    if (node == nodes.count()) nodes.ranks.emplace_back();
    nodes.of_rank.push_back(node);
    nodes.ranks[static_cast<std::size_t>(node)].push_back(static_cast<int>(rank));
  }
  return nodes;
}

}  // namespace papaya
