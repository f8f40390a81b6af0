// MPI_Allreduce along a chain of the ranks in the order in which they are expected to arrive: the sorted
// linear tree of Proficz 2018 (Mohammadalizadehbakhtevari 2021, section 5.2). The order comes from measured
// arrivals instead of a thread that estimates when its rank will be done (algorithms/sorted_ring.hpp).
//
// The message goes in chunks from the rank that comes first to the one that comes last, and each adds its
// operand. The last one has the result, and sends it round to the first, which passes it on along the same
// links. Who comes early is done with reducing when the last one comes; what is left then is the last rank's
// own operand and the result's way.
//
// Order: as the ranks stand in the chain, for all elements, and by one rank for all: the same bits on all
// ranks.
//
// Cost: 2 S bytes sent and received by each rank, 2(p-1) latencies; after the last arrival, if it was
// expected, S bytes and p-1 latencies.

#include <algorithm>

#include "algorithms/costs.hpp"
#include "algorithms/sorted_ring.hpp"

namespace papaya {

namespace {

constexpr Parameter parameters[] = {SortedRing::chunk_parameter};

SortedRing::Shape shape_of(std::span<const std::int64_t> values) noexcept {
  return {.chunk_bytes = static_cast<std::size_t>(values[0]) / 64 * 64, .blocks = 1, .most_pre_steps = 0};
}

constexpr Descriptor descriptor = {
    .collective = Collective::allreduce,
    .name = "sorted_tree",
    .summary =
        "along a chain in the order of expected arrivals and round with the result; S bytes, p-1 latencies "
        "after the last",
    .source = "Proficz 2018, sorted linear tree",
    .one_node = false,
    .needs_arrival_order = true,
    .predefined_only = true,
    .serves_declines = false,
    .max_element_bytes = SortedRing::max_element_bytes,
    .parameters = parameters,
    // If nobody is late: 2(p-1) hops of a chunk, then the other chunks, one after the other, up and round.
    .call_ns =
        [](const NetworkCall& call) {
          constexpr double most_chunk_bytes = 65536;
          const double chunk = std::min(1.0, most_chunk_bytes / std::max(call.bytes, 1.0));
          const double hops =
              2 * (call.nodes - 1) * call.latency_ns + 2 * (call.ranks - call.nodes) * nominal_node_latency_ns;
          const double core = call.reduce_ns() + (call.node_ranks <= 1 ? 1 : 3) * call.copy_ns();
          const double network = 2 * call.transfer_ns();
          return hops + chunk * (call.ranks - 1) * (network + core) + (1 - chunk) * std::max(network, core);
        },
    .segment = [](const Layout& layout, std::size_t, std::span<const std::int64_t> values) -> SegmentShape {
      return SortedRing::segment(layout.ranks, shape_of(values));
    },
    .prepare = [](const Team& team, std::size_t, std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<SortedRing>(team, shape_of(values));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
