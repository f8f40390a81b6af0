// MPI_Allreduce by Rabenseifner's algorithm: reduce-scatter by halving, then allgather by doubling, flat over all ranks
// (Mohammadalizadehbakhtevari 2021, chapter 6, describes it before making it hierarchical). How a chunk goes is in
// halving.hpp; messages larger than `chunk_bytes` go chunk by chunk, two of them under way at a time.
//
// Cost: 2 log2 p latencies, 2(p-1)/p S bytes sent and received by each rank.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "algorithms/chunk_pipeline.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/halving.hpp"

namespace papaya {

namespace {

constexpr std::int64_t most_chunk_bytes = 16 << 20;
constexpr int depth = 2;

enum ParameterIndex : std::size_t { chunk_bytes, recursive_doubling_bytes };

Halving::Shape shape_for(int ranks, std::size_t capacity, std::span<const std::int64_t> values) {
  const std::size_t chunk = std::min(capacity, static_cast<std::size_t>(values[chunk_bytes]));
  return {ranks, std::max(chunk, std::size_t{4096}), depth};
}

std::vector<int> all_ranks(int ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

class Rabenseifner final : public OverWire {
 public:
  Rabenseifner(const Team& team, const Halving::Shape& shape, std::size_t recursive_doubling_bytes)
      : OverWire(team),
        halving_(*team.wire, shape, all_ranks(team.size), team.rank, recursive_doubling_bytes),
        chunks_(halving_, shape.depth, team.first_round - 1) {}

 private:
  Steps steps(Operands operands) override {
    const std::size_t most = halving_.shape().chunk_bytes / operands.reduction->element_bytes;
    std::size_t begun = 0;
    const auto serve = [&] { return chunks_.serve(operands, most, begun); };
    serve();
    if (operands.count != 0) tell_deposited(operands);
    co_await until(serve);
    co_await released(*team_.wire);
  }

  bool is_missing(int rank) const override { return rank == chunks_.awaited_rank(); }

  Halving halving_;
  ChunkPipeline<Halving> chunks_;
};

constexpr Parameter parameters[] = {
    {"chunk_bytes", 1 << 20, 4096, most_chunk_bytes, "bytes of the message that are reduced at a time", "piece_bytes"},
    {"recursive_doubling_bytes", 2048, 0, 65536,
     "up to this size ranks exchange whole messages by recursive doubling, in half as many steps", "whole_bytes"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::allreduce,
    .name = "rabenseifner",
    .old_name = "rsa",
    .summary = "reduce-scatter by halving, then allgather by doubling; 2 log2 p steps, 2(p-1)/p S bytes a rank",
    .source = "Mohammadalizadehbakhtevari 2021, chapter 6: the flat algorithm",
    .one_node = false,
    .predefined_only = true,
    .split_phase = true,
    .serves_declines = false,
    .max_element_bytes = Halving::most_element_bytes,
    .parameters = parameters,
    // 2 log2 N alpha + 2(N-1)/N S beta between nodes, whose ranks each carry 1/q of it; log2 q steps on them with the
    // larger parts: 2(q-1)/q S c; (p-1)/p S gamma. Two chunks overlap. Short messages go whole: log2 p steps.
    .call_ns =
        [](const NetworkCall& call) {
          constexpr double doubled_bytes = 2048;
          constexpr double chunk_bytes = 1 << 20;
          const auto [outer, is_folded] = costs::doubling(call.nodes);
          const double inner = std::ceil(std::log2(call.node_ranks));
          const double whole_ns = call.latency_ns + call.node_ranks * call.transfer_ns() + call.reduce_ns();
          const double node_steps_ns = inner * (nominal_node_latency_ns + call.copy_ns() + call.reduce_ns());
          if (call.bytes <= doubled_bytes) return node_steps_ns + (outer + 2 * is_folded) * whole_ns;
          const double network = 2 * outer * call.latency_ns + 2 * costs::share(call.nodes) * call.transfer_ns();
          const double core = 2 * inner * nominal_node_latency_ns + 2 * costs::share(call.node_ranks) * call.copy_ns() +
                              costs::share(call.ranks) * call.reduce_ns();
          const double fold = is_folded * (2 * call.latency_ns + 2 * call.transfer_ns() + call.reduce_ns());
          return fold + costs::overlapped_ns(network, core, call.bytes / chunk_bytes);
        },
    .segment = [](const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      return shape_for(layout.ranks, capacity, values).segment();
    },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<Rabenseifner>(team, shape_for(team.size, capacity, values),
                                            static_cast<std::size_t>(values[recursive_doubling_bytes]));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
