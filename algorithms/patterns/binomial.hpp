// Binomial trees over `participants`: log2 p levels, each participant sends once.
#pragma once

namespace papaya::patterns {

// Numbered from the root: participant r's parent is r without its lowest bit, its children are r with one of the bits
// below that.

// Of participant `r` > 0.
constexpr int binomial_parent(int r) noexcept {
  return r & (r - 1);
}

// Calls `visit(child)` for each child, the one with the largest subtree first.
template <class Visit>
constexpr void for_each_binomial_child(int r, int participants, Visit visit) {
  int top = 1;
  while (top < participants && (r == 0 || top < (r & -r))) top *= 2;
  for (int bit = top / 2; bit > 0; bit /= 2)
    if ((r == 0 || bit < (r & -r)) && r + bit < participants) visit(r + bit);
}

// For reductions, the same combinations whichever participant is the root: at level k the blocks of 2^k participants,
// in their order, become pairs. A block's sum is with the participant whose low k bits are the root's, or, where the
// last blocks are not full, with that of the part there is.

// Who has the sum of block `block` of level `level`, which is not empty.
constexpr int block_holder(int level, int block, int participants, int root) noexcept {
  if (level == 0) return block;
  const int right = 2 * block + 1;
  const bool has_right = right << (level - 1) < participants;
  const int kept = has_right && (root >> (level - 1) & 1) != 0 ? right : right - 1;
  return block_holder(level - 1, kept, participants, root);
}

struct BlockPartner {
  int participant;
  bool is_right;  // of the pair
};

// Calls `receive(partner)` for each block that participant `me` takes into its own, the smallest first; returns the
// participant that it then gives its sum to, -1 for the root.
template <class Receive>
constexpr int for_each_block(int me, int participants, int root, Receive receive) {
  for (int level = 0; 1 << level < participants; ++level) {
    const int block = me >> level;
    const int other = block ^ 1;
    if (other << level >= participants) continue;
    const int holder = block_holder(level, other, participants, root);
    if ((block & 1) != (root >> level & 1)) return holder;
    receive(BlockPartner{holder, (other & 1) != 0});
  }
  return -1;
}

}  // namespace papaya::patterns
