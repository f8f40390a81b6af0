// MPI_Allreduce over a ring on which the ranks that come first reduce before the others come: the pre-reduced
// ring of Proficz 2018 (Mohammadalizadehbakhtevari 2021, section 5.2). Arrivals are measured instead of
// estimated by a thread of each rank (algorithms/sorted_ring.hpp).
//
// As in `ring` there are p blocks, each reduced along all ranks and then sent round. There block c begins at
// the c-th rank, so that of most blocks several ranks are still to be reduced when the last one comes. Here
// the ranks stand in the order in which they are expected, and block c begins k ranks earlier, at the first
// one at the earliest: after the last arrival p-1-k steps of reducing are left instead of p-1. These k
// pre-steps cost time where nobody is late, so there are as many as fit between the arrivals of the earlier
// half and of the last rank, by what a hop takes. With all arrivals alike this is `ring`; with all p-1
// pre-steps each block goes from the first rank to the last, as in `sorted_tree`.
//
// Order: each block along the ring from where it begins, by one rank for all: the same bits on all ranks.
//
// Cost: between 2(p-1)/p S and 2 S bytes sent and received by each rank; after the last arrival, if it was
// expected, (2p-2-k)/p S bytes.

#include <algorithm>

#include "algorithms/costs.hpp"
#include "algorithms/sorted_ring.hpp"

namespace papaya {

namespace {

constexpr Parameter parameters[] = {
    SortedRing::chunk_parameter,
    {"pre_reduced_steps", 65536, 0, 65536,
     "most steps that the first ranks reduce before the last ones come, if arrivals allow", "most_pre_steps"},
};

SortedRing::Shape shape_of(int ranks, std::span<const std::int64_t> values) noexcept {
  return {.chunk_bytes = static_cast<std::size_t>(values[0]) / 64 * 64,
          .blocks = ranks,
          .most_pre_steps = static_cast<int>(values[1])};
}

constexpr Descriptor descriptor = {
    .collective = Collective::allreduce,
    .name = "pre_reduced_ring",
    .summary =
        "the ring in the order of expected arrivals; early ranks reduce k steps before; (2p-2-k)/p S bytes after the "
        "last",
    .source = "Proficz 2018, pre-reduced ring",
    .one_node = false,
    .needs_arrival_order = true,
    .predefined_only = true,
    .serves_declines = false,
    .max_element_bytes = SortedRing::max_element_bytes,
    .parameters = parameters,
    // If nobody is late it is `ring`: 2(p-1) hops, 2(p-1)/p S bytes over each link, (p-1)/p S gamma, and here results
    // are copied out.
    .call_ns =
        [](const NetworkCall& call) {
          const double part = costs::share(call.ranks);
          const double hops =
              2 * (call.nodes - 1) * call.latency_ns + 2 * (call.ranks - call.nodes) * nominal_node_latency_ns;
          const double core = part * (call.reduce_ns() + (call.node_ranks <= 1 ? 1 : 3) * call.copy_ns());
          return hops + std::max(2 * part * call.transfer_ns(), core);
        },
    .segment = [](const Layout& layout, std::size_t, std::span<const std::int64_t> values) -> SegmentShape {
      return SortedRing::segment(layout.ranks, shape_of(layout.ranks, values));
    },
    .prepare = [](const Team& team, std::size_t, std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<SortedRing>(team, shape_of(team.size, values));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
