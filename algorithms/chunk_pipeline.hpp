// Chunks of a message that go over the wire one after the other, several under way at a time, each as steps of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "algorithms/datatype.hpp"
#include "algorithms/steps.hpp"

namespace papaya {

// Up to `depth` chunks under way, each begun in its turn. `Algorithm::chunk` has the steps of one.
template <class Algorithm>
class ChunkPipeline {
 public:
  ChunkPipeline(Algorithm& algorithm, int depth, std::uint64_t chunks_before)
      : algorithm_(algorithm),
        under_way_(static_cast<std::size_t>(depth)),
        begun_(chunks_before),
        ended_(chunks_before) {}

  // Only while is_full() is false.
  void begin(const std::byte* operand, std::byte* result, std::size_t count, const Reduction& reduction) {
    Steps& steps = of(begun_ + 1);
    steps = algorithm_.chunk(++begun_, operand, result, count, reduction);
    steps.advance();
  }
  bool is_full() const noexcept { return begun_ - ended_ == under_way_.size(); }
  bool is_idle() const noexcept { return begun_ == ended_; }
  // The number of the next chunk that begins.
  std::uint64_t next() const noexcept { return begun_ + 1; }

  // Moves a message on that goes in chunks of at most `most` elements, of which `begun` belong to chunks that have
  // begun. True once all chunks have ended.
  bool serve(const Operands& operands, std::size_t most, std::size_t& begun) {
    const std::size_t element = operands.reduction->element_bytes;
    while (true) {
      if (begun < operands.count && !is_full()) {
        const std::size_t count = std::min(most, operands.count - begun);
        begin(static_cast<const std::byte*>(operands.send) + begun * element,
              static_cast<std::byte*>(operands.receive) + begun * element, count, *operands.reduction);
        begun += count;
      } else if (is_idle()) {
        return true;
      } else if (advance()) {
        end_oldest();
      } else {
        return false;
      }
    }
  }

  // Moves all on; true once the oldest is done, which is to be followed by end_oldest().
  bool advance() noexcept {
    for (std::uint64_t chunk = ended_ + 1; chunk <= begun_; ++chunk) of(chunk).advance();
    return is_oldest_done();
  }
  bool is_oldest_done() const noexcept { return ended_ < begun_ && of(ended_ + 1).is_done(); }
  void end_oldest() noexcept { ++ended_; }
  int awaited_rank() const noexcept { return is_idle() ? -1 : of(ended_ + 1).awaited_rank(); }

 private:
  Steps& of(std::uint64_t chunk) noexcept { return under_way_[static_cast<std::size_t>(chunk % under_way_.size())]; }
  const Steps& of(std::uint64_t chunk) const noexcept {
    return under_way_[static_cast<std::size_t>(chunk % under_way_.size())];
  }

  Algorithm& algorithm_;
  std::vector<Steps> under_way_;
  std::uint64_t begun_;
  std::uint64_t ended_;
};

}  // namespace papaya
