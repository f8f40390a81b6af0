// Threshold broadcast: Iakymchuk et al. 2021, III-B. The root's first elements reach all ranks, or all elements a share
// of the ranks; the others' buffers stay as they are. Which, and by which way: threshold.hpp.
//
// A rank takes a chunk from its parent's slots into its buffer and sends it to its children from there, as far as they
// have free slots, each child by itself.
//
// The root leaves once its chunks are in its children's slots and the wire has read its buffer. It waits for a child
// only where that one is `slots` chunks behind, or, by messages of MPI, until that one takes long chunks: as MPI makes
// a root wait whose message is long. Of calls with one chunk the root may be slots / 2 + 1 ahead at least, since credit
// comes for half of the slots at a time.
//
// No deadlock, also where calls alternate with barriers or others of the program's own: order what the ranks do by
// call, then by chunk, then by distance from the root. A rank that waits for a chunk waits for its parent to send it,
// which comes before. A rank that waits for a free slot to send a chunk waits for a child to release one of an earlier
// number: also before, since the child releases a chunk as soon as it has copied it and never waits for a grandchild
// first. A rank that waits for its chunks to be read waits for a child to receive them, whose slots are free. So
// whoever waits, waits for something of the same or an earlier call, and never in a circle; and a rank that has not
// come to that call is on its way, because it would wait for this one only in a later one.
//
// All ranks make the same number of calls. A rank that ends waits for the last credit of its children.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/weak/threshold.hpp"

namespace papaya {

class ThresholdBcast final : public Weak {
 public:
  // `request` is the same on all ranks, and alike in all calls.
  ThresholdBcast(const Team& team, const WeakRequest& request);

  std::int64_t in_force(std::size_t parameter, std::int64_t asked) const noexcept override {
    return plan_.in_force(parameter, asked);
  }
  bool may_end() noexcept override { return streams_.may_end() && streams_.are_sources_free(); }

 private:
  Steps steps(Operands operands) override;
  bool may_send(std::size_t child) noexcept;
  bool can_move() noexcept;
  int awaited() const noexcept;

  const ThresholdPlan plan_;
  const patterns::Neighbours neighbours_;
  Streams streams_;
  std::uint64_t clock_;
  // Chunks of this call.
  std::uint64_t here_ = 0;
  std::vector<std::uint64_t> sent_;  // by child
};

}  // namespace papaya
