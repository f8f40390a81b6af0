// Who sends which block to whom once the last rank, the straggler, has come (StragglAR: arXiv 2505.23523). Free of
// memory that is shared and of communication.
//
// n ranks: 0 is the straggler, 1 to n-1 the others. There are n-1 blocks, and rank b+1 owns block b: it has combined
// all operands of the block but the straggler's. Time goes in rounds, in each of which a rank sends a block to one rank
// and receives one. In round b the straggler sends its operand of block b to the owner, who then has the result, which
// goes on to all in later rounds. The result of the last block the straggler has at the same time, since the owner has
// sent it what the others come to before it came: so two ranks distribute that one.
//
// If n is a power of two, n-2 + log2 n rounds are needed, which no schedule undercuts. It is a broadcast over a
// hypercube that turns: ranks are the elements of the field of n elements, of which a is a primitive one; 0 is the
// straggler, the owner of block b is a^b, and in round u rank x sends to x + a^u. Any log2 n rounds that follow each
// other are the dimensions of a cube, in which the block that set out in the first of them comes to all. With the
// coordinates of x in the last log2 n dimensions a^(u-d) ... a^(u-1), the lowest that is not 0 says in which round the
// block that x has to send set out, hence which it is.
//
// For other n each round is filled by a rule: of the blocks that are not everywhere those that the fewest ranks have
// come first, and go to the ranks that have the fewest blocks. That takes up to a seventh more rounds
// (two of 14 on 12 ranks).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace papaya::patterns {

// A result that a rank sends.
struct BlockSend {
  int round;
  int to;
  int block;
  friend constexpr bool operator==(const BlockSend&, const BlockSend&) = default;
};

constexpr int owner_of_block(int block) noexcept {
  return block + 1;
}

class StragglerSchedule {
 public:
  explicit StragglerSchedule(int ranks) : ranks_(ranks) {
    if (std::has_single_bit(static_cast<unsigned>(ranks))) find_field();
  }

  // The results that `rank` sends, in the order of rounds.
  std::vector<BlockSend> sends_of(int rank) const { return powers_.empty() ? by_rule(rank) : by_field(rank); }

 private:
  int blocks() const noexcept { return ranks_ - 1; }

  // The powers of a primitive element, as polynomials over two elements, modulo one of degree log2 n.
  void find_field() {
    const auto order = static_cast<std::size_t>(blocks());
    const auto size = static_cast<std::uint32_t>(ranks_);
    for (std::uint32_t modulus = size + 1; powers_.size() != order; modulus += 2) {
      powers_.assign(1, 1);
      for (std::uint32_t power = 1; powers_.size() <= order; powers_.push_back(power)) {
        power <<= 1;
        if ((power & size) != 0) power ^= modulus;
        if (power == 1) break;
      }
    }
    exponents_.resize(size);
    for (std::size_t i = 0; i < order; ++i) exponents_[powers_[i]] = static_cast<int>(i);
  }
  int exponent(int e) const noexcept { return ((e % blocks()) + blocks()) % blocks(); }
  std::uint32_t power(int e) const noexcept { return powers_[static_cast<std::size_t>(exponent(e))]; }

  std::vector<BlockSend> by_field(int rank) const {
    std::vector<BlockSend> sends;
    const int dimensions = std::countr_zero(static_cast<unsigned>(ranks_));
    const int last = blocks() - 1;
    for (int round = 0; round < last + dimensions; ++round) {
      int block = last;
      std::uint32_t to = power(round);
      if (rank == 0) {
        if (round <= last) continue;
      } else {
        to ^= power(rank - 1);
        const int dimension = std::countr_zero(power(rank - 1 - (round - dimensions)));
        // Once no more blocks set out, the last one goes on from the straggler as they would.
        block = std::min(round - dimensions + dimension, last);
        if (block < 0) continue;
      }
      sends.push_back({round, to == 0 ? 0 : exponents_[to] + 1, block});
    }
    return sends;
  }

  std::vector<BlockSend> by_rule(int rank) const {
    struct Block {
      int number;
      std::vector<int> holders;
    };
    const auto n = static_cast<std::size_t>(ranks_);
    std::vector<BlockSend> sends;
    std::vector<std::uint8_t> has(n * n);  // by rank and block
    std::vector<int> count(n);             // of each rank's blocks
    std::vector<Block> open;               // those on their way
    std::vector<int> order(n);
    std::vector<std::uint8_t> is_sending(n);
    std::vector<std::uint8_t> is_receiving(n);
    const auto give = [&](int to, Block& block) {
      has[static_cast<std::size_t>(to) * n + static_cast<std::size_t>(block.number)] = 1;
      ++count[static_cast<std::size_t>(to)];
      block.holders.push_back(to);
    };
    for (int round = 0; round < blocks() || !open.empty(); ++round) {
      std::fill(is_sending.begin(), is_sending.end(), std::uint8_t{0});
      std::fill(is_receiving.begin(), is_receiving.end(), std::uint8_t{0});
      if (round < blocks()) {
        const auto owner = static_cast<std::size_t>(owner_of_block(round));
        is_sending[0] = is_receiving[owner] = 1;
      }
      std::stable_sort(open.begin(), open.end(),
                       [](const Block& a, const Block& b) { return a.holders.size() < b.holders.size(); });
      for (std::size_t i = 0; i < n; ++i) order[i] = (round + static_cast<int>(i)) % ranks_;
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return count[static_cast<std::size_t>(a)] < count[static_cast<std::size_t>(b)];
      });
      for (Block& block : open) {
        const std::size_t holders = block.holders.size();
        std::size_t next = 0;
        for (const int to : order) {
          const auto at = static_cast<std::size_t>(to);
          if (is_receiving[at] != 0 || has[at * n + static_cast<std::size_t>(block.number)] != 0) continue;
          while (next < holders && is_sending[static_cast<std::size_t>(block.holders[next])] != 0) ++next;
          if (next == holders) break;
          const int from = block.holders[next];
          is_sending[static_cast<std::size_t>(from)] = is_receiving[at] = 1;
          if (from == rank) sends.push_back({round, to, block.number});
          give(to, block);
        }
      }
      if (round < blocks()) {
        Block& block = open.emplace_back(Block{round, {}});
        give(owner_of_block(round), block);
        if (round == blocks() - 1) give(0, block);
      }
      std::erase_if(open, [&](const Block& block) { return block.holders.size() == n; });
    }
    return sends;
  }

  const int ranks_;
  std::vector<std::uint32_t> powers_;  // none: no power of two
  std::vector<int> exponents_;         // by element
};

// Who comes last, as one rank sees it: the straggler of later calls once it is the same one three calls in a row.
class LastArrival {
 public:
  explicit LastArrival(int ranks) : awaited_(static_cast<std::size_t>(ranks)) {}

  void begin_call() noexcept { std::fill(awaited_.begin(), awaited_.end(), std::uint8_t{1}); }
  // Who has come? At the first look `me`, whose look it is, is the last to have.
  template <class HasCome>
  void look(int me, HasCome&& has_come) noexcept {
    const auto own = static_cast<std::size_t>(me);
    const bool is_first = awaited_[own] != 0;
    for (std::size_t rank = 0; rank < awaited_.size(); ++rank) {
      if (awaited_[rank] == 0 || rank == own || !has_come(static_cast<int>(rank))) continue;
      awaited_[rank] = 0;
      last_ = static_cast<int>(rank);
    }
    awaited_[own] = 0;
    if (is_first) last_ = me;
  }
  // All have come: who is the straggler, after `before`?
  int end_call(int before) noexcept {
    in_a_row_ = last_ == candidate_ ? in_a_row_ + 1 : 1;
    candidate_ = last_;
    return in_a_row_ >= calls_in_a_row ? candidate_ : before;
  }
  void forget() noexcept { in_a_row_ = 0; }

 private:
  static constexpr int calls_in_a_row = 3;

  std::vector<std::uint8_t> awaited_;
  int last_ = 0;
  int candidate_ = -1;
  int in_a_row_ = 0;
};

}  // namespace papaya::patterns
