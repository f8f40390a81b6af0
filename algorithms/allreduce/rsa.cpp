// MPI_Allreduce as reduce-scatter and allgather by recursive halving and doubling, flat over all ranks
// (Mohammadalizadehbakhtevari 2021, chapter 6, describes it before making it hierarchical). How a piece goes is in
// halving.hpp; messages larger than `piece_bytes` go piece by piece, two of them under way at a time.
//
// Cost: 2 log2 p latencies, 2(p-1)/p S bytes sent and received by each rank.

#include <algorithm>
#include <numeric>
#include <vector>

#include "algorithms/halving.hpp"

namespace papaya {

namespace {

constexpr std::int64_t most_piece_bytes = 16 << 20;
constexpr int depth = 2;

enum ParameterPlace : std::size_t { piece_bytes, whole_bytes };

Halving::Shape shape_for(int ranks, std::size_t capacity, std::span<const std::int64_t> values) {
  const std::size_t piece = std::min(capacity, static_cast<std::size_t>(values[piece_bytes]));
  return {ranks, std::max(piece, std::size_t{4096}), depth};
}

std::vector<int> all_ranks(int ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

class Rsa final : public OverWire {
 public:
  Rsa(const Team& team, const Halving::Shape& shape, std::size_t whole)
      : OverWire(team),
        halving_(*team.wire, shape, all_ranks(team.size), team.rank, whole),
        pieces_(halving_, team.first_round - 1) {}

 private:
  Steps steps(Operands operands) override {
    const std::size_t element = operands.reduction->element_bytes;
    const std::size_t most = halving_.shape().piece_bytes / element;
    const auto advance = [this] { return pieces_.advance(); };
    for (std::size_t first = 0; first < operands.count; first += most) {
      if (pieces_.is_full()) {
        co_await until(advance);
        pieces_.end_oldest();
      }
      pieces_.begin(static_cast<const std::byte*>(operands.send) + first * element,
                    static_cast<std::byte*>(operands.receive) + first * element, std::min(most, operands.count - first),
                    *operands.reduction);
      if (first == 0) tell_deposited(operands);
    }
    while (!pieces_.is_idle()) {
      co_await until(advance);
      pieces_.end_oldest();
    }
    co_await released(*team_.wire);
  }

  bool is_missing(int rank) const override { return rank == pieces_.awaited_rank(); }

  Halving halving_;
  HalvingPipeline pieces_;
};

constexpr Parameter parameters[] = {
    {"piece_bytes", 1 << 20, 4096, most_piece_bytes, "bytes of the message that are reduced at a time"},
    {"whole_bytes", 2048, 0, 65536, "up to this size a message is exchanged whole, in half as many steps"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::allreduce,
    .name = "rsa",
    .summary = "reduce-scatter by halving and allgather by doubling; 2 log2 p steps, 2(p-1)/p S bytes a rank",
    .source = "Mohammadalizadehbakhtevari 2021, chapter 6: the flat algorithm",
    .one_node = false,
    .predefined_only = true,
    .split_phase = true,
    .takes_vetoes = false,
    .max_element_bytes = Halving::most_element_bytes,
    .parameters = parameters,
    .segment = [](const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      return shape_for(layout.ranks, capacity, values).segment();
    },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<Rsa>(team, shape_for(team.size, capacity, values),
                                   static_cast<std::size_t>(values[whole_bytes]));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
