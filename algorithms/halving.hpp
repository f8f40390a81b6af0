// Pieces of an allreduce among parties that write to each other over the wire: reduce-scatter by recursive halving,
// then allgather by doubling. The parties are the ranks of a team (rsa) or a rank of each node (hierarchical_rsa).
//
// Step k of log2 p: a party gives half of the range it has to the one that differs in bit k, and reduces the other half
// with what that one gives. Then the other way round, with results. If p is no power of two, 2^m + x, each even one of
// the first 2x parties first gives its operand to the next, and gets the result from it in the end. Short pieces are
// exchanged whole in each step, which takes half as many.
//
// Pieces are numbered, from 1 and alike by all; `depth` of them may be under way. Piece n has bank n mod 2 depth of
// everybody's segment. A party that ends piece n has heard from all that they have begun piece n, and so ended piece
// n - depth; hence when it begins piece n + depth all have ended n - depth, whose bank that is.
//
// Order: parties whose numbers differ in the low bits are combined first, the lower one on the left: by number, and the
// same bits everywhere and in every run, whole or halved.
//
// Cost: 2 log2 p latencies, 2(p-1)/p S bytes sent and received by each party; whole, log2 p latencies, S log2 p bytes.
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
    Shape(int all, std::size_t piece, int under_way);

    int parties;
    int members;  // that halve and double: a power of two
    int extra;
    int steps;
    int depth;
    std::size_t piece_bytes;
    std::size_t bank_bytes = 0;
    std::vector<std::size_t> halves;  // by step: where in a bank lies what is to be reduced
    std::size_t results = 0;          // then the results, at their places in the piece

    SegmentShape segment() const;
    std::size_t largest_whole() const noexcept;  // bytes of a piece that may be exchanged whole
  };

  // `peers`: the rank in the team of each party; `me`: this one's number.
  Halving(Notified& wire, const Shape& shape, std::vector<int> peers, int me, std::size_t whole_bytes)
      : wire_(wire), shape_(shape), peers_(std::move(peers)), me_(me), whole_bytes_(whole_bytes) {}

  const Shape& shape() const noexcept { return shape_; }

  // Piece `number` of `count` elements. `operand` may be `result`; both, and the reduction, stay until the steps are
  // done.
  Steps piece(std::uint64_t number, const std::byte* operand, std::byte* result, std::size_t count,
              const Reduction& reduction);

 private:
  int member_of(int party) const noexcept {
    return party < 2 * shape_.extra ? (party % 2 == 0 ? -1 : party / 2) : party - shape_.extra;
  }
  int party_of(int member) const noexcept { return member < shape_.extra ? 2 * member + 1 : member + shape_.extra; }

  Notified& wire_;
  const Shape shape_;
  const std::vector<int> peers_;
  const int me_;
  const std::size_t whole_bytes_;
};

// Pieces one after the other, up to `depth` under way, each begun in its turn.
class HalvingPipeline {
 public:
  HalvingPipeline(Halving& halving, std::uint64_t pieces_before)
      : halving_(halving),
        under_way_(static_cast<std::size_t>(halving.shape().depth)),
        begun_(pieces_before),
        ended_(pieces_before) {}

  // Only while is_full() is false.
  void begin(const std::byte* operand, std::byte* result, std::size_t count, const Reduction& reduction) {
    Steps& steps = of(begun_ + 1);
    steps = halving_.piece(++begun_, operand, result, count, reduction);
    steps.advance();
  }
  bool is_full() const noexcept { return begun_ - ended_ == under_way_.size(); }
  bool is_idle() const noexcept { return begun_ == ended_; }

  // Moves all on; true once the oldest is done, which is to be followed by end_oldest().
  bool advance() noexcept {
    for (std::uint64_t piece = ended_ + 1; piece <= begun_; ++piece) of(piece).advance();
    return is_oldest_done();
  }
  bool is_oldest_done() const noexcept { return ended_ < begun_ && of(ended_ + 1).is_done(); }
  void end_oldest() noexcept { ++ended_; }
  int awaited_rank() const noexcept { return is_idle() ? -1 : of(ended_ + 1).awaited_rank(); }

 private:
  Steps& of(std::uint64_t piece) noexcept { return under_way_[static_cast<std::size_t>(piece % under_way_.size())]; }
  const Steps& of(std::uint64_t piece) const noexcept {
    return under_way_[static_cast<std::size_t>(piece % under_way_.size())];
  }

  Halving& halving_;
  std::vector<Steps> under_way_;
  std::uint64_t begun_;
  std::uint64_t ended_;
};

}  // namespace papaya
