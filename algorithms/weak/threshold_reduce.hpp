// Threshold reduce: Iakymchuk et al. 2021, III-B. The root gets the reduction of all ranks' first elements, or of all
// elements of a share of the ranks; the rest of its buffer stays as it is. Which, and by which way: threshold.hpp.
//
// A rank combines its chunk with its children's, in a fixed order, and sends the result to its parent. The lower ranks'
// operand is on the left, unless the operation is commutative and the message goes along a chain. So the root has the
// same bits in every run. On the binomial tree they are the same for every root, too.
//
// A rank without children leaves once its chunks are in its parent's slots and the wire has read its buffer. It waits
// for the parent only where that one is `slots` chunks behind, or, by messages of MPI, until that one takes long
// chunks: as MPI makes a sender wait. Of calls with one chunk it may be slots / 2 + 1 ahead at least, since credit
// comes for half of the slots at a time. The others wait for their children, as in MPI, and leave without waiting for
// what they have sent: it lies in memory of their own. That has two rounds of slots; a chunk's place is written again
// when, at some time after the chunk was sent, the wire had read all.
//
// No deadlock, also where calls alternate with barriers or others of the program's own: order what the ranks do by
// call, then by chunk, then by distance from the root, the farthest first. A rank that waits for a child's chunk waits
// for something before. A rank that waits for a free slot, or for what it has sent to be read, waits for its parent to
// release a chunk of an earlier number, or to receive into slots that are free: the parent releases chunks in this
// order, each as soon as those of the same number have come from the children before. So whoever waits, waits for
// something of the same or an earlier call, and never in a circle; and a rank that has not come to that call is on its
// way, because it would wait for this one only in a later one.
//
// All ranks make the same number of calls. A rank that ends waits for its parent's last credit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "algorithms/weak/threshold.hpp"

namespace papaya {

class ThresholdReduce final : public Weak {
 public:
  // `request` is the same on all ranks, and alike in all calls.
  ThresholdReduce(const Team& team, const WeakRequest& request);
  ~ThresholdReduce() override;
  ThresholdReduce(const ThresholdReduce&) = delete;
  ThresholdReduce& operator=(const ThresholdReduce&) = delete;

  std::int64_t in_force(std::size_t parameter, std::int64_t asked) const noexcept override {
    return plan_.in_force(parameter, asked);
  }
  bool may_end() noexcept override { return streams_.may_end() && streams_.are_sources_free(); }

 private:
  Steps steps(Operands operands) override;
  bool has_place() noexcept;
  std::byte* place() noexcept;

  const ThresholdPlan plan_;
  const patterns::Neighbours neighbours_;
  // Partial results on their way to the parent, of ranks that have children.
  const std::uint64_t places_;
  std::vector<std::byte> partial_;
  std::uint64_t sent_ = 0;  // chunks, from the first call on
  std::uint64_t read_ = 0;  // of those: as many at least the wire has read
  std::uint64_t clock_;
  Streams streams_;
};

}  // namespace papaya
