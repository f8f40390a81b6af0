// Pure peer and tree arithmetic, free of memory and communication.
#pragma once

#include <bit>
#include <cstdint>

namespace papaya::patterns {

// The fixed reduction tree in rank order. A node (first, level) covers the ranks [first, first + 2^level) that exist;
// its halves are (first, level-1) and (first + 2^(level-1), level-1). The shape depends on the number of ranks alone,
// so a reduction over it has the same bits whatever the order of arrivals.
constexpr int tree_height(int ranks) noexcept {
  return ranks <= 1 ? 0 : static_cast<int>(std::bit_width(static_cast<std::uint32_t>(ranks - 1)));
}

// The first rank of the node's sibling at `level`; it may be beyond the last rank.
constexpr int tree_sibling(int first, int level) noexcept { return first ^ (1 << level); }
constexpr bool tree_is_left(int first, int level) noexcept { return (first & (1 << level)) == 0; }

}  // namespace papaya::patterns
