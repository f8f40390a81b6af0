// MPI_Allreduce as reduce-scatter and allgather by recursive halving and doubling, flat over all ranks
// (Mohammadalizadehbakhtevari 2021, chapter 6, describes it before making it hierarchical).
//
// Step k of log2 p: rank r gives half of the range it has to the rank that differs in bit k, and reduces the
// other half with what that one gives. Then the other way round, with results. If p is no power of two, 2^m +
// x, each even one of the first 2x ranks first gives its operand to the next, and gets the result from it in
// the end.
//
// Messages larger than `piece_bytes` go piece by piece. Piece n has bank n mod 2 of everybody's segment: a
// rank that ends it has heard from all ranks that they have ended piece n-1.
//
// Order: ranks whose numbers differ in the low bits are combined first, the lower one on the left: by rank,
// and the same bits on all ranks and in every run.
//
// Cost: 2 log2 p latencies, 2(p-1)/p S bytes sent and received by each rank.

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "algorithms/algorithm.hpp"

namespace papaya {

namespace {

constexpr std::size_t banks = 2;
constexpr std::int64_t most_piece_bytes = 16 << 20;

std::size_t round_up(std::size_t bytes) noexcept {
  return (bytes + 63) / 64 * 64;
}

// Who does what, and where it lies in a bank: what is to be reduced, step by step, then results at their
// places in the piece.
struct Shape {
  explicit Shape(int ranks, std::size_t piece)
      : members(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))),
        extra(ranks - members),
        steps(std::bit_width(static_cast<unsigned>(members)) - 1),
        piece_bytes(round_up(piece)) {
    std::size_t half = piece_bytes;
    for (int k = 0; k < steps; ++k) {
      halves.push_back(bank_bytes);
      half = half / 2 + 1;  // an element more, at most, than the half
      bank_bytes += round_up(half + most_element);
    }
    results = bank_bytes;
    bank_bytes += piece_bytes;
  }

  static constexpr std::size_t most_element = 1024;
  int members;  // that halve and double
  int extra;
  int steps;
  std::size_t piece_bytes;
  std::size_t bank_bytes = 0;
  std::vector<std::size_t> halves;  // by step
  std::size_t results = 0;

  int notifications() const { return 2 + 2 * steps; }
  static constexpr int folded = 0;  // an operand, or a result, of a rank that is left over
  static constexpr int unfolded = 1;
  int half(int k) const { return 2 + k; }
  int doubled(int k) const { return 2 + steps + k; }

  int member_of(int rank) const { return rank < 2 * extra ? (rank % 2 == 0 ? -1 : rank / 2) : rank - extra; }
  int rank_of(int member) const { return member < extra ? 2 * member + 1 : member + extra; }
};

class Rsa final : public Prepared {
 public:
  Rsa(const Team& team, std::size_t piece)
      : team_(team), shape_(team.size, piece), piece_(team.first_round - 1) {}

  bool run(const Operands& operands, wait::Site& site) override {
    const std::size_t element = operands.reduction->element_bytes;
    const std::size_t most = shape_.piece_bytes / element;
    for (std::size_t first = 0; first < operands.count; first += most) {
      ++piece_;
      run_piece(operands, first, std::min(most, operands.count - first), site);
      if (first == 0 && operands.deposited != nullptr) operands.deposited(operands.context);
    }
    team_.wire->release_sources();
    return true;
  }

  bool is_missing(int rank) const override { return rank == missing_; }

 private:
  void run_piece(const Operands& operands, std::size_t first, std::size_t count, wait::Site& site) noexcept {
    const Reduction& reduction = *operands.reduction;
    const std::size_t element = reduction.element_bytes;
    const auto* operand = static_cast<const std::byte*>(operands.send) + first * element;
    auto* const result = static_cast<std::byte*>(operands.receive) + first * element;
    const int me = shape_.member_of(team_.rank);
    Notified& wire = *team_.wire;
    const std::size_t bank = piece_ % banks * shape_.bank_bytes;
    const std::byte* const results = wire.segment() + bank + shape_.results;

    if (team_.rank < 2 * shape_.extra) {
      const int other = team_.rank ^ 1;
      if (me < 0) {
        wire.write_notify(other, bank + shape_.results, operand, count * element, Shape::folded, piece_);
        wait_for(other, Shape::unfolded, site);
        std::memcpy(result, results, count * element);
        return;
      }
      wait_for(other, Shape::folded, site);
      reduction.combine(reduction, results, operand, result, count);
      operand = result;
    }

    std::size_t low = 0;
    std::size_t high = count;
    struct Range {
      std::size_t low;
      std::size_t high;
    };
    Range given[32];
    for (int k = 0; k < shape_.steps; ++k) {
      const int other = shape_.rank_of(me ^ (1 << k));
      const bool keeps_upper = (me >> k & 1) != 0;
      const std::size_t middle = low + (high - low) / 2;
      given[k] = keeps_upper ? Range{low, middle} : Range{middle, high};
      (keeps_upper ? low : high) = middle;
      wire.write_notify(other, bank + shape_.halves[static_cast<std::size_t>(k)],
                        operand + given[k].low * element, (given[k].high - given[k].low) * element,
                        shape_.half(k), piece_);
      wait_for(other, shape_.half(k), site);
      const std::byte* const theirs = wire.segment() + bank + shape_.halves[static_cast<std::size_t>(k)];
      const std::byte* const mine = operand + low * element;
      reduction.combine(reduction, keeps_upper ? theirs : mine, keeps_upper ? mine : theirs,
                        result + low * element, high - low);
      operand = result;
    }
    if (shape_.steps == 0 && operand != result) std::memcpy(result, operand, count * element);
    for (int k = shape_.steps - 1; k >= 0; --k) {
      const int other = shape_.rank_of(me ^ (1 << k));
      wire.write_notify(other, bank + shape_.results + low * element, result + low * element,
                        (high - low) * element, shape_.doubled(k), piece_);
      wait_for(other, shape_.doubled(k), site);
      const Range& theirs = given[k];
      std::memcpy(result + theirs.low * element, results + theirs.low * element,
                  (theirs.high - theirs.low) * element);
      low = std::min(low, theirs.low);
      high = std::max(high, theirs.high);
    }
    if (team_.rank < 2 * shape_.extra)
      wire.write_notify(team_.rank ^ 1, bank + shape_.results, result, count * element, Shape::unfolded,
                        piece_);
  }

  void wait_for(int peer, int id, wait::Site& site) noexcept {
    const auto has_come = [&] { return team_.wire->look(id) >= piece_; };
    if (has_come()) return;
    missing_ = peer;
    team_.wire->wait(*team_.policy, site, has_come, this);
    missing_ = -1;
  }

  const Team team_;
  const Shape shape_;
  std::uint64_t piece_;
  int missing_ = -1;
};

constexpr Parameter parameters[] = {
    {"piece_bytes", 1 << 20, 4096, most_piece_bytes, "bytes of the message that are reduced at a time"},
};

std::size_t piece_of(std::size_t capacity, std::span<const std::int64_t> values) noexcept {
  return std::max(std::min(capacity, static_cast<std::size_t>(values[0])), std::size_t{4096});
}

constexpr Descriptor descriptor = {
    .collective = Collective::allreduce,
    .name = "rsa",
    .summary = "reduce-scatter by halving and allgather by doubling; 2 log2 p steps, 2(p-1)/p S bytes a rank",
    .source = "Mohammadalizadehbakhtevari 2021, chapter 6: the flat algorithm",
    .one_node = false,
    .predefined_only = true,
    .takes_vetoes = false,
    .max_element_bytes = Shape::most_element,
    .parameters = parameters,
    .segment = [](int ranks, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      const Shape shape(ranks, piece_of(capacity, values));
      return {banks * shape.bank_bytes, shape.notifications()};
    },
    .prepare = [](const Team& team, std::size_t capacity, std::span<const std::int64_t> values)
        -> std::unique_ptr<Prepared> { return std::make_unique<Rsa>(team, piece_of(capacity, values)); },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
