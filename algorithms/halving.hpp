// Chunks of an allreduce among participants that write to each other over the wire: reduce-scatter by recursive
// halving, then allgather by doubling. The participants are the ranks of a team (rabenseifner) or a rank of each node
// (hierarchical_rabenseifner).
//
// Step k of log2 p: a participant gives half of the range it has to the one that differs in bit k, and reduces the
// other half with what that one gives. Then the other way round, with results. If p is no power of two, 2^m + x, each
// even one of the first 2x participants first gives its operand to the next, and gets the result from it in the end.
// Short chunks are exchanged whole in each step (recursive doubling), which takes half as many.
//
// Chunks are numbered, from 1 and alike by all; `depth` of them may be under way. Chunk n has bank n mod 2 depth of
// everybody's segment. A participant that ends chunk n has heard from all that they have begun chunk n, and so ended
// chunk n - depth; hence when it begins chunk n + depth all have ended n - depth, whose bank that is.
//
// Where the wire can, results come to `result` itself (Notified::redirect): each contains this participant's operand,
// so none comes before it has told where to.
//
// Order: participants whose numbers differ in the low bits are combined first, the lower one on the left: by number,
// and the same bits everywhere and in every run, whole or halved.
//
// Cost: 2 log2 p latencies, 2(p-1)/p S bytes sent and received by each participant; whole, log2 p latencies, S log2 p
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "algorithms/datatype.hpp"
#include "algorithms/steps.hpp"
#include "algorithms/transport/notified.hpp"

namespace papaya {

class Halving {
 public:
  static constexpr std::size_t most_element_bytes = 1024;

  struct Shape {
    Shape(int all, std::size_t chunk, int under_way);

    int participants;
    int members;  // that halve and double: a power of two
    int extra;
    int steps;
    int depth;
    std::size_t chunk_bytes;
    std::size_t bank_bytes = 0;
    std::vector<std::size_t> halves;  // by step: where in a bank lies what is to be reduced
    std::size_t results = 0;          // then the results, at their offsets in the chunk

    SegmentShape segment() const;
    std::size_t largest_doubled() const noexcept;  // of a chunk that may go by recursive doubling
  };

  // `peers`: the rank in the team of each participant; `me`: this one's number.
  Halving(Notified& wire, const Shape& shape, std::vector<int> peers, int me, std::size_t recursive_doubling_bytes)
      : wire_(wire),
        shape_(shape),
        peers_(std::move(peers)),
        me_(me),
        recursive_doubling_bytes_(recursive_doubling_bytes) {}

  const Shape& shape() const noexcept { return shape_; }

  // Chunk `number` of `count` elements. `operand` may be `result`; both, and the reduction, stay until the steps are
  // done.
  Steps chunk(std::uint64_t number, const std::byte* operand, std::byte* result, std::size_t count,
              const Reduction& reduction);

 private:
  int member_of(int participant) const noexcept {
    return participant < 2 * shape_.extra ? (participant % 2 == 0 ? -1 : participant / 2) : participant - shape_.extra;
  }
  int participant_of(int member) const noexcept {
    return member < shape_.extra ? 2 * member + 1 : member + shape_.extra;
  }

  Notified& wire_;
  const Shape shape_;
  const std::vector<int> peers_;
  const int me_;
  const std::size_t recursive_doubling_bytes_;
};

}  // namespace papaya
