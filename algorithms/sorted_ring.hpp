// MPI_Allreduce over a ring on which the ranks stand in the order in which they are expected to arrive
// (Proficz 2018): what allreduce/sorted_tree and allreduce/pre_reduced_ring have in common. The message goes
// in chunks, each of them along all ranks, which reduce it, and then round to all that lack the result; the
// two differ in how many chunks there are and where the chunks begin. patterns/sorted_ring.hpp says what goes
// over which link and in which order; a chunk goes in segments, each of which goes on as soon as it has come.
//
// One order on all ranks. Chunk 0 begins at the first position, ends at the last, and passes all ranks twice;
// its first segment carries words beside its data, one for each rank. On the way to the last position each
// rank puts in how long it waited in the call before. There, by one rank for all, the expectation is brought
// up to date; with the result it goes to all ranks, which derive from it the order of the next call. So what
// is measured in call n moves ranks in call n + 2, and only data that have come with the result of call n - 1
// decide on anything in call n. The first call is in the order of ranks. Split-phase calls that their program
// does not move on seem to wait for longer.
//
// Each link is a sliding window. Segments are counted from the first call on and alike on all ranks: in each call there
// are as many numbers as the busiest link could need, and those that a link does not need count as taken. Number s goes
// to slot s mod `slots` of the receiver's segment, whoever sends it, with a notification of the sender's own, which it
// sets to s. The receiver answers, half a round of slots at a time, up to which number all have been
// taken, on a notification of its own at the sender. That is said of numbers, not of the sender's segments:
// when another rank has become the one before, what an earlier one wrote lies below all that the new one may
// write. A new neighbour knows no recent number, so it is sent one at the end of the call before.
//
// Notifications of answers that a sender needs no more are on their way when it leaves a call. Both ends know
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
  static constexpr SlidingWindow window = {.slots = 8, .answered_at_once = 4};
  static constexpr std::size_t max_element_bytes = 1024;  // the smallest segment
  static constexpr Parameter segment_parameter = {"segment_bytes", 65536, 1024, std::int64_t{4} << 20,
                                                  "bytes that travel at a time; a multiple of 64"};

  struct Shape {
    std::size_t segment_bytes;
    int chunks;          // of a message; one or as many as there are ranks
    int most_pre_steps;  // of as many chunks as ranks
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
  void take_places();
  void answer() noexcept;
  void end_call(std::uint64_t numbers);

  std::byte* slot(std::uint64_t number) const noexcept;
  std::size_t place(std::uint64_t number) const noexcept;
  int arrived(int writer) const noexcept { return writer; }
  int taken(int reader) const noexcept { return team_.size + reader; }

  const Shape shape_;
  const std::size_t words_bytes_;  // of a slot, before the segment

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

  // Two segments with words: chunk 0's first, as it goes on as a partial result and as the result.
  std::vector<std::byte> carried_;

  const std::uint64_t begin_;  // what the numbers of segments begin after
  std::uint64_t end_;          // the last number of the calls so far
  SlidingWindow::Sender to_next_;
  SlidingWindow::Receiver from_previous_;
  std::vector<std::uint64_t> last_answer_;  // of each rank, as long as this one lives
};

}  // namespace papaya
