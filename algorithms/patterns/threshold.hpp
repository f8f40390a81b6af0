// What a threshold leaves of a collective with a root: a share of the elements, or a share of the ranks and the way the
// message takes between them.
//
// Ranks are left out by the binomial tree for reductions in rank order (binomial.hpp): the last stage of a broadcast
// reaches as many new ranks as all stages before it, and these are leaves. So the ranks of the last stage are left out
// first, of one stage those farthest from the root, and of these those with the highest numbers. A parent is of an
// earlier stage than its children: whoever takes part, all between it and the root do.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

#include "algorithms/patterns/binomial.hpp"

namespace papaya::patterns {

// The fewest of `count` that are at least this share of them, in (0, 1]. Rounding does not add one: 0.55 of 100 are 55,
// though the double is a little more than 0.55.
inline std::size_t share_of(double share, std::size_t count) noexcept {
  if (share >= 1) return count;
  constexpr double rounding = 4 * std::numeric_limits<double>::epsilon();
  const double least = std::ceil(share * static_cast<double>(count) * (1 - rounding));
  return least >= static_cast<double>(count) ? count : static_cast<std::size_t>(least);
}

// A reduction's level at which this rank gives what it has to another: a broadcast's stages in reverse.
constexpr int level_of(int rank, int ranks, int root) noexcept {
  int level = 0;
  for (; 1 << level < ranks; ++level) {
    const int block = rank >> level;
    if ((block ^ 1) << level < ranks && (block & 1) != (root >> level & 1)) break;
  }
  return level;
}

// By rank: whether it takes part, if `least` ranks are to. The root does.
inline std::vector<bool> taking_part(int ranks, int root, int least) {
  using Key = std::tuple<int, int, int>;  // stage, distance from the root, rank
  std::vector<Key> order;
  for (int rank = 0; rank < ranks; ++rank) {
    int distance = 0;
    for (int at = rank; at != root; ++distance) at = for_each_block(at, ranks, root, [](auto) {});
    order.emplace_back(-level_of(rank, ranks, root), distance, rank);
  }
  std::sort(order.begin(), order.end());
  std::vector<bool> takes_part(static_cast<std::size_t>(ranks));
  for (int i = 0; i < std::clamp(least, 1, ranks); ++i)
    takes_part[static_cast<std::size_t>(std::get<2>(order[static_cast<std::size_t>(i)]))] = true;
  return takes_part;
}

// The ways between those who take part.
enum class Route : std::uint8_t {
  binomial,    // the tree
  around,      // a chain from the root on, by rank, and on from 0: operands of a reduction are not in rank order
  both_sides,  // two chains, one from the lowest rank and one from the highest, that meet in the root
};

struct Child {
  int rank;
  bool is_right;  // what comes from it is of higher ranks
};
// Of a rank that takes part. A reduction combines what it gets from the children in this order, each with all before.
struct Neighbours {
  int parent = -1;  // the root's
  std::vector<Child> children;
};

inline Neighbours neighbours_of(int rank, int root, Route route, const std::vector<bool>& takes_part) {
  const int ranks = static_cast<int>(takes_part.size());
  const auto is_in = [&](int one) { return takes_part[static_cast<std::size_t>(one)]; };
  Neighbours found;
  if (route == Route::binomial) {
    found.parent = for_each_block(rank, ranks, root, [&](BlockPartner partner) {
      if (is_in(partner.participant)) found.children.push_back({partner.participant, partner.is_right});
    });
    return found;
  }
  const auto next = [&](int from, int step) {
    int at = from;
    do at = (at + step + ranks) % ranks;
    while (!is_in(at));
    return at;
  };
  if (route == Route::around) {
    if (rank != root) found.parent = next(rank, -1);
    if (const int child = next(rank, 1); child != root) found.children.push_back({child, true});
    return found;
  }
  if (rank != root) found.parent = next(rank, rank < root ? 1 : -1);
  if (const int left = next(rank, -1); rank <= root && left < rank) found.children.push_back({left, false});
  if (const int right = next(rank, 1); rank >= root && right > rank) found.children.push_back({right, true});
  return found;
}

}  // namespace papaya::patterns
