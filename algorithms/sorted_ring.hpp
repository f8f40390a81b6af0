// MPI_Allreduce over a ring on which the ranks stand in the order in which they are expected to arrive
// (Proficz 2018): what allreduce/sorted_tree and allreduce/pre_reduced_ring have in common. The message goes
// in blocks, each of them along all ranks, which reduce it, and then round to all that do not have the result; the
// two differ in how many blocks there are and where the blocks begin. patterns/sorted_ring.hpp says what goes
// over which link and in which order; a block goes in chunks, each of which goes on as soon as it has come.
//
// One order on all ranks. Block 0 begins at the first position, ends at the last, and passes all ranks twice;
// its first chunk carries words beside its data, one for each rank. On the way to the last position each
// rank puts in how long it waited in the call before. There, by one rank for all, the expectation is brought
// up to date; with the result it goes to all ranks, which derive from it the order of the next call. So what
// is measured in call n moves ranks in call n + 2, and only data that have come with the result of call n - 1
// decide on anything in call n. The first call is in the order of ranks. Split-phase calls that their program
// does not move on seem to wait for longer.
//
// Each link is a sliding window. Chunks are counted from the first call on and alike on all ranks: in each call there
// are as many numbers as the busiest link could need, and those that a link does not need count as released. Number s
// goes to slot s mod `slots` of the receiver's segment, whoever sends it, with a notification of the sender's own,
// which it sets to s. The receiver returns credit for half of the slots at a time: up to which number all are released,
// on a notification of its own at the sender. That is said of numbers, not of the sender's chunks: when another rank
// has become the one before, what an earlier one wrote lies below all that the new one may write. A new neighbour knows
// no recent number, so it is sent one at the end of the call before.
//
// Notifications of credit that a sender needs no more are on their way when it leaves a call. Both ends know
// which there are, for they follow from the numbers; they are looked at before the end.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "algorithms/patterns/sorted_ring.hpp"
#include "algorithms/sliding_window.hpp"
#include "algorithms/steps.hpp"

namespace papaya {

class SortedRing final : public OverWire {
 public:
  static constexpr SlidingWindow window = {.slots = 8, .credits_at_once = 4};
  static constexpr std::size_t max_element_bytes = 1024;  // the smallest chunk
  static constexpr Parameter chunk_parameter = {
      "chunk_bytes",  65536, 1024, std::int64_t{4} << 20, "bytes that travel at a time; a multiple of 64",
      "segment_bytes"};

  struct Shape {
    std::size_t chunk_bytes;
    int blocks;          // of a message; one or as many as there are ranks
    int most_pre_steps;  // of as many blocks as ranks
  };
  static SegmentShape segment(int ranks, const Shape& shape);

  SortedRing(const Team& team, const Shape& shape);
  ~SortedRing() override;

  // Of the next call.
  std::span<const int> order() const noexcept { return order_; }
  const patterns::Arrivals& arrivals() const noexcept { return arrivals_; }
  // Of the last one.
  int pre_steps() const noexcept { return pre_steps_; }

 private:
  struct Call;

  Steps steps(Operands operands) override;
  void plan(int pre_steps);
  void take_position();
  void return_credit() noexcept;
  void end_call(std::uint64_t numbers);

  std::byte* slot(std::uint64_t number) const noexcept;
  std::size_t slot_offset(std::uint64_t number) const noexcept;
  int arrival_id(int writer) const noexcept { return writer; }
  int credit_id(int reader) const noexcept { return team_.size + reader; }

  const Shape shape_;
  const std::size_t words_bytes_;  // of a slot, before the chunk

  // The order, and this rank in it.
  std::vector<int> order_;
  int position_ = 0;
  int next_ = 0;
  int previous_ = 0;
  int pre_steps_ = 0;
  std::vector<patterns::Pass> in_;  // over the link from the previous rank
  std::vector<patterns::Pass> out_;

  // What is known of arrivals.
  patterns::Arrivals arrivals_;
  std::vector<int> measured_order_;  // in which the ranks stood when they waited for what is told in this call
  std::uint32_t waited_ns_ = 0;      // in the last call; 0: there was none

  // Two chunks with words: block 0's first, as it goes on as a partial result and as the result.
  std::vector<std::byte> carried_;

  const std::uint64_t begin_;  // what the numbers of chunks begin after
  std::uint64_t end_;          // the last number of the calls so far
  SlidingWindow::Sender to_next_;
  SlidingWindow::Receiver from_previous_;
  std::vector<std::uint64_t> last_credit_;  // of each rank, as long as this one lives
};

}  // namespace papaya
