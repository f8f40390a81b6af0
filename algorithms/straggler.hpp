// MPI_Allreduce for calls to which one rank comes late, the straggler (StragglAR: arXiv 2505.23523): what
// allreduce/straggler_rsa does with chunks of a message. patterns/straggler.hpp says who sends what to whom.
//
// A chunk is cut into p-1 blocks, of which each rank but the straggler owns one. While the straggler is away the others
// send each other their operands of the blocks, and each owner combines what it gets. The straggler then sends its
// operand of each block to the owner, who completes it, and the results go round by the schedule. What the others come
// to in the last block is in the straggler's segment by then, and both complete it.
//
// Who is the straggler? The rank whose operand of block 0 comes last to its owner, three calls in a row. The owner
// tells all with the results of the next call, in the notifications of block 0, and all go by it in the call after
// that: so the choice depends only on what all ranks got with earlier results. If it is wrong, the call takes longer
// and nothing else.
//
// Order: operands are combined over the fixed tree in rank order, whoever is late: the same bits on all ranks and in
// every run. So what is combined without the straggler are the nodes of the tree that it is not in: log2 p of them.
//
// Chunks are numbered, from 1 and alike by all. Chunk n has bank n mod 2 depth of everybody's segment, and
// notifications of its own there: a rank that ends it has heard from all that they have begun it, as in halving.hpp. An
// operand's notification has one writer. That of a result has several, one a chunk: but whoever waits for the next
// chunk's has looked at this one's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "algorithms/chunk_pipeline.hpp"
#include "algorithms/patterns/straggler.hpp"

namespace papaya {

class Straggler final : public OverWire {
 public:
  static constexpr std::size_t most_element_bytes = 64;
  static constexpr int most_ranks = 1 << 24;  // a notification has room for a rank beside its number

  struct Shape {
    Shape(int all, std::size_t chunk, int under_way);

    int ranks;
    int depth;  // chunks under way
    std::size_t chunk_bytes;
    std::size_t slot_bytes;  // of a bank, for a block from each rank
    std::size_t results;     // then the results, at their offsets in the chunk
    std::size_t bank_bytes;

    SegmentShape segment() const { return {2 * static_cast<std::size_t>(depth) * bank_bytes, 4 * depth * ranks}; }
  };

  // `late`: the straggler of all calls, or -1 for the one that is measured.
  Straggler(const Team& team, const Shape& shape, int late);

  // Of the next call.
  int straggler() const noexcept { return straggler_; }

  // The steps of a chunk, for the pipeline.
  Steps chunk(std::uint64_t number, const std::byte* operand, std::byte* result, std::size_t count,
              const Reduction& reduction);

 private:
  struct Chunk;

  Steps steps(Operands operands) override;
  bool is_missing(int rank) const override { return rank == chunks_.awaited_rank(); }
  void plan();
  void learn();

  int blocks() const noexcept { return team_.size - 1; }
  // The schedule has the straggler as rank 0, the others follow.
  int rank_of(int scheduled) const noexcept {
    return scheduled == 0 ? straggler_ : scheduled - 1 < straggler_ ? scheduled - 1 : scheduled;
  }
  int scheduled(int rank) const noexcept { return rank == straggler_ ? 0 : rank < straggler_ ? rank + 1 : rank; }
  int owner(int block) const noexcept { return rank_of(patterns::owner_of_block(block)); }

  const Shape shape_;
  const bool is_fixed_;
  int straggler_;
  int next_;                       // what the owner of block 0 tells in the next call
  int told_;                       // in this one
  std::uint64_t first_chunk_ = 0;  // of this call
  patterns::LastArrival arrivals_;
  std::vector<patterns::BlockSend> sends_;
  std::vector<std::vector<std::byte*>> partials_;  // by chunk under way and first rank: where a partial result lies
  std::vector<std::vector<std::uint8_t>> has_;     // by chunk under way and block: whether its result is in place
  ChunkPipeline<Straggler> chunks_;
};

}  // namespace papaya
