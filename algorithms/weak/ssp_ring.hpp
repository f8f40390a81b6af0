// Stale synchronous parallel (SSP) allreduce on a ring, which Iakymchuk et al. 2021 leave as future work: their
// segmented pipelined ring (section IV-A) under the rule of their Algorithm 1. For large messages: every rank sends and
// receives 2(p-1)/p of the message, where the hypercube takes log2(p) whole ones.
//
// A rank's calls are its clock: 1, 2, 3 and so on. What it brings to a call is its contribution of that clock. A result
// has one contribution of every rank; those of the others may be up to `slack` clocks old.
//
// The message is cut into p parts, and each part into blocks of up to `chunk_bytes`. In step t of 2(p-1) rank r takes a
// block of part r-t-1 from rank r-1. In the first p-1 steps (reduce-scatter) that is a partial result, to which it adds
// its own operand; then the block of part r+1 is complete here. In the others (allgather) it is a complete block, which
// replaces all that is here. Either way the rank sends on what it has now, as its message of this call. A block goes on
// as soon as it has come, so all links are busy at once.
//
// Stale blocks. Of each block and step a rank takes its neighbour's newest message that is no newer than its own call
// and has no contribution of before clock - slack; only if there is none does it wait. The clocks of a block's
// contributions never fall along the ring, since no rank takes a message of a later call than its own: the oldest is
// that of the rank that the block began at. In the reduce-scatter a late rank makes the block old for the ranks after
// it, which have its message of an earlier call. In the allgather it does so again, with blocks that may have been old
// when it took them. So a rank that is d calls late can make a result 2d clocks old, the own contribution of the rank
// that gets it included, and the others can be slack / 2 calls ahead of it before they wait; a rank that is ahead of
// all others waits after `slack` calls. In the first call all wait for all.
//
// Each block has clocks of its own, which portions() tells; WeakStatus has the oldest of all blocks. For that a message
// counts the ranks whose contributions are of its oldest clock, of that or the next, and so on.
//
// With slack 0 a call takes the messages of the same clock only, and each block is reduced by one order for all ranks:
// the same bits on all ranks and in every run, those of allreduce/ring. The order is that of the ring, which begins at
// another rank for each part: the operation must be commutative.
//
// Nobody waits for ever. The message of the own call is always fresh enough: its sender has followed the same rule with
// the same clock. So a rank in call c waits only for a rank that has not sent in call c, step t yet, which itself
// waits, if at all, in an earlier call or in an earlier step of this one. And who has left call c has sent all its
// messages of that call: nobody in call c waits for it.
//
// Slots. The message of clock n goes to slot n mod (2 slack + 1) of its block and step. What a rank takes in call a has
// the number a - slack at least, for a message is never older than the contributions in it. Consider who sends message
// n of a block. In the reduce-scatter it has left call n-1, and what it had of this block then includes a contribution
// of the next rank, of clock n-1-slack at least, which that one brought when it took the block in this very step. So
// what the next rank takes in this step from now on, it takes in call n-slack or later. In the allgather the block that
// is sent itself includes a contribution of the next rank, of clock n-slack at least: again that rank has come to call
// n-slack. Hence it still reads numbers of n-2 slack at least, none of which shares the slot of n.
//
// A complete block is sent on from the slot that it has come to. Say it has the number n; then the call is n + slack at
// most. The slot is written again with number n + 2 slack + 1, when a contribution of this rank is in the block, of
// clock n + slack + 1 at least. Before this rank brought that, its messages of the earlier calls had left: see the
// sources.
//
// All ranks make the same number of calls. A rank that ends waits for the messages of its last call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/weak/ssp.hpp"
#include "algorithms/weak/weak.hpp"

namespace papaya {

class SspRing final : public Weak {
 public:
  // Equal on all ranks.
  struct Shape {
    int ranks;
    std::size_t count;  // elements of a message
    std::size_t element_bytes;
    std::uint64_t slack;
    std::size_t chunk_bytes;  // a block has no more, or one element

    SegmentShape segment() const noexcept;

    std::size_t blocks_per_part() const noexcept;
    std::size_t blocks() const noexcept { return static_cast<std::size_t>(ranks) * blocks_per_part(); }
    // The first element of a block; of `blocks()` the end.
    std::size_t block_begin(std::size_t block) const noexcept;
    // Empty ones are not sent, except that messages without elements have one block.
    bool is_sent(std::size_t block) const noexcept {
      return block_begin(block) < block_begin(block + 1) || (count == 0 && block == 0);
    }

    std::size_t steps() const noexcept { return 2 * static_cast<std::size_t>(ranks - 1); }
    std::size_t part_begin(std::size_t part) const noexcept;
    std::size_t largest_part() const noexcept;
    std::size_t header_bytes() const noexcept;
    std::size_t message_bytes() const noexcept;
    SspSlots slots() const noexcept { return {slack, 2 * slack + 1, message_bytes()}; }
  };

  SspRing(const Team& team, const Shape& shape);
  ~SspRing() override;
  SspRing(const SspRing&) = delete;
  SspRing& operator=(const SspRing&) = delete;

  std::span<const WeakPortion> portions() const noexcept override { return portions_; }  // the blocks
  bool may_end() noexcept override { return has_heard_all(); }

 private:
  // Of a step and the block of a part: what is taken, and by its own numbers what is sent.
  struct Portion {
    std::size_t step;
    std::size_t in_part;
  };

  Steps steps(Operands operands) override;
  void begin_block(std::byte* message) const noexcept;
  void add_own(std::byte* message, std::size_t ranks) const noexcept;
  std::uint64_t clock_at(const std::byte* message, std::size_t position) const noexcept;
  void note(std::size_t block, std::uint64_t oldest, std::uint64_t own) noexcept;
  void send(const Portion& portion, const std::byte* message, std::size_t block) noexcept;
  bool has_heard_all() const noexcept;

  std::size_t part_at(std::size_t step) const noexcept;  // that is sent in a step, and taken in the one before
  std::size_t block_at(const Portion& portion) const noexcept {
    return part_at(portion.step) * per_part_ + portion.in_part;
  }
  int id_of(const Portion& portion) const noexcept {
    return static_cast<int>(portion.step * per_part_ + portion.in_part);
  }
  std::byte* source(const Portion& portion) noexcept {
    return sources_.data() + static_cast<std::size_t>(id_of(portion)) * shape_.message_bytes();
  }

  const Shape shape_;
  const std::size_t per_part_;
  const std::size_t ranks_;
  const SspSlots slots_;
  std::vector<std::byte> sources_;  // what is sent up to the step in which a block is complete
  std::vector<WeakPortion> portions_;
  std::uint64_t clock_;
};

}  // namespace papaya
