// Pure peer and tree arithmetic, free of memory and communication.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "base/topology.hpp"

namespace papaya::patterns {

// The fixed reduction tree in rank order. A node (first, level) covers the ranks [first, first + 2^level) that exist;
// its halves are (first, level-1) and (first + 2^(level-1), level-1). The shape depends on the number of ranks alone,
// so a reduction over it has the same bits whatever the order of arrivals.
constexpr int tree_height(int ranks) noexcept {
  return ranks <= 1 ? 0 : static_cast<int>(std::bit_width(static_cast<std::uint32_t>(ranks - 1)));
}

// The first rank of the node's sibling at `level`; it may be beyond the last rank.
constexpr int tree_sibling(int first, int level) noexcept {
  return first ^ (1 << level);
}
constexpr bool tree_is_left(int first, int level) noexcept {
  return (first & (1 << level)) == 0;
}

// A node of the tree. Where its right half has no ranks it is the same as its left half: the lower level is
// its name.
struct TreeNode {
  int first;
  int level;
  friend constexpr bool operator==(TreeNode, TreeNode) = default;
};
constexpr TreeNode tree_node(int first, int level, int ranks) noexcept {
  while (level > 0 && first + (1 << (level - 1)) >= ranks) --level;
  return {first, level};
}
constexpr int tree_end(TreeNode node, int ranks) noexcept {
  return std::min(node.first + (1 << node.level), ranks);
}

// The fewest nodes that cover the ranks [first, last], in rank order.
template <class Visit>
constexpr void cover_by_tree(int first, int last, int ranks, Visit&& visit) {
  while (first <= last) {
    int level = tree_height(ranks);
    while ((first & ((1 << level) - 1)) != 0 || std::min(first + (1 << level), ranks) > last + 1) --level;
    const TreeNode node = tree_node(first, level, ranks);
    visit(node);
    first = tree_end(node, ranks);
  }
}

// Ranks by NUMA node: all ranks, group by group, each in rank order; groups by their first rank. `order` has
// one entry per rank, `ends` gets where each group ends in it. `locations` as below: without them all are one
// group.
inline void group_by_numa(std::span<const topology::Location> locations, std::span<int> order, std::vector<int>& ends) {
  ends.clear();
  int placed = 0;
  const auto ranks = static_cast<int>(order.size());
  for (int first = 0; first < ranks; ++first) {
    const auto numa_of = [&](int rank) {
      return locations.empty() ? 0 : locations[static_cast<std::size_t>(rank)].numa;
    };
    const int numa = numa_of(first);
    bool is_new = true;
    for (int before = 0; before < first; ++before) is_new = is_new && numa_of(before) != numa;
    if (!is_new) continue;
    for (int rank = first; rank < ranks; ++rank)
      if (numa_of(rank) == numa) order[static_cast<std::size_t>(placed++)] = rank;
    ends.push_back(placed);
  }
}

// Are the groups of ranks that end at `ends` nodes of one level of the fixed reduction tree?
inline bool are_subtrees(std::span<const int> ends) noexcept {
  if (ends.size() == 1) return true;
  for (std::size_t i = 0; i + 1 < ends.size(); ++i)
    if (ends[i] != static_cast<int>(i + 1) * ends.front()) return false;
  return std::has_single_bit(static_cast<unsigned>(ends.front())) &&
         ends.back() - ends[ends.size() - 2] <= ends.front();
}

// The tree of a broadcast from `root`: who takes from whom. A message enters each NUMA node once, and in it each cache
// once; the ranks that bring it in, and those that share a cache, form trees with `radix` children.
//
// `locations` has one entry per rank, or none: then all share a cache. `order` is scratch; `parents` gets each rank's
// parent, -1 for the root. Both have one entry per rank.
inline void broadcast_tree(std::span<const topology::Location> locations, int root, int radix, std::span<int> order,
                           std::span<int> parents) noexcept {
  const auto location_of = [&](int rank) {
    return locations.empty() ? topology::Location{} : locations[static_cast<std::size_t>(rank)];
  };
  const topology::Location home = location_of(root);
  // The root's group first at each level, and in every group the rank that brings the message in.
  const auto key = [&](int rank) {
    const topology::Location location = location_of(rank);
    return std::tuple(location.numa != home.numa, location.numa, location != home, location.cache, rank != root, rank);
  };
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
  // Links the first rank of each group of order[begin, end) to the others' first ones.
  const auto link = [&](std::size_t begin, std::size_t end, auto&& same_group) {
    const auto leader = [&](std::size_t number) {
      std::size_t at = begin;
      for (; number > 0; --number) {
        const std::size_t group = at;
        while (same_group(order[at], order[group])) ++at;
      }
      return order[at];
    };
    std::size_t number = 1;
    for (std::size_t i = begin + 1; i < end; ++i)
      if (!same_group(order[i], order[i - 1]))
        parents[static_cast<std::size_t>(order[i])] = leader((number++ - 1) / static_cast<std::size_t>(radix));
  };
  const auto end_of = [&](std::size_t begin, auto&& same_group) {
    std::size_t end = begin + 1;
    while (end < order.size() && same_group(order[end], order[begin])) ++end;
    return end;
  };
  const auto same_numa = [&](int a, int b) { return location_of(a).numa == location_of(b).numa; };
  const auto same_cache = [&](int a, int b) { return location_of(a) == location_of(b); };
  parents[static_cast<std::size_t>(root)] = -1;
  link(0, order.size(), same_numa);
  for (std::size_t numa = 0, numa_end = 0; numa < order.size(); numa = numa_end) {
    numa_end = end_of(numa, same_numa);
    link(numa, numa_end, same_cache);
    for (std::size_t cache = numa, cache_end = 0; cache < numa_end; cache = cache_end) {
      cache_end = std::min(end_of(cache, same_cache), numa_end);
      for (std::size_t i = cache + 1; i < cache_end; ++i)
        parents[static_cast<std::size_t>(order[i])] = order[cache + (i - cache - 1) / static_cast<std::size_t>(radix)];
    }
  }
}

}  // namespace papaya::patterns
