// MPI_Allreduce for calls to which one rank comes late, the straggler: while it is away the others reduce and scatter,
// and a schedule distributes the results once it has come (StragglAR: arXiv 2505.23523). How a chunk goes, and how the
// straggler is found, is in algorithms/straggler.hpp. Messages larger than `chunk_bytes` go chunk by chunk,
// `chunks_in_flight` of them under way, or fewer where memory is short: so much is reduced before the straggler comes.
//
// Order: the fixed tree, whoever is late: the same bits on all ranks and in every run.
//
// Cost after the straggler's arrival, if it was expected and p is a power of two: p-2 + log2 p rounds of a
// latency and S/(p-1) bytes sent and received. Before it: S (p-2)/(p-1) bytes.

#include <algorithm>
#include <cmath>

#include "algorithms/costs.hpp"
#include "algorithms/straggler.hpp"

namespace papaya {

namespace {

enum ParameterIndex : std::size_t { chunk_bytes, chunks_in_flight, late_rank };

constexpr Parameter parameters[] = {
    {"chunk_bytes", 256 << 10, 4096, 16 << 20, "bytes of the message that are reduced at a time"},
    {"chunks_in_flight", 8, 1, 8, "chunks that are under way at a time, hence reduced before the late rank comes"},
    {"late_rank", -1, -1, Straggler::most_ranks - 1, "the rank that comes late; -1: the one that is measured to"},
};

Straggler::Shape shape_for(int ranks, std::size_t capacity, std::span<const std::int64_t> values) {
  const std::size_t chunk =
      std::max(std::min(capacity, static_cast<std::size_t>(values[chunk_bytes])), std::size_t{4096});
  const std::size_t most_in_flight = std::max(2 * capacity / chunk, std::size_t{2});
  return {ranks, chunk, static_cast<int>(std::min(most_in_flight, static_cast<std::size_t>(values[chunks_in_flight])))};
}

constexpr Descriptor descriptor = {
    .collective = Collective::allreduce,
    .name = "straggler_rsa",
    .summary = "while one rank is late the others reduce-scatter; after it p-2 + log2 p steps of S/(p-1) bytes",
    .source = "StragglAR, arXiv 2505.23523",
    .one_node = false,
    .predefined_only = true,
    .split_phase = true,
    .serves_declines = false,
    .max_element_bytes = Straggler::most_element_bytes,
    .parameters = parameters,
    // If nobody is late, as in trials: the reduce-scatter, S beta + (p-2)/(p-1) S gamma, then p-2 + log2 p rounds of
    // alpha + S/(p-1) beta, of which few blocks need fewer. q ranks share a node's link.
    .call_ns =
        [](const NetworkCall& call) {
          constexpr double element_bytes = 8;
          const double others = std::max(1.0, call.ranks - 1);
          const double blocks = std::clamp(call.bytes / element_bytes, 1.0, others);
          const double rounds = blocks - 1 + std::ceil(std::log2(call.ranks));
          const double away = call.node_ranks * (call.ranks - call.node_ranks) / others;
          const double network = std::max(1.0, away) * (rounds / blocks + (others - 1) / others) * call.transfer_ns();
          const double core = std::max(1.0, others - 1) / others * call.reduce_ns();
          return costs::hops_ns(call, rounds + (others > 1 ? 1 : 0)) + network +
                 (call.node_ranks <= 1 ? core : core / 2);
        },
    .segment = [](const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      return shape_for(layout.ranks, capacity, values).segment();
    },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<Straggler>(team, shape_for(team.size, capacity, values),
                                         static_cast<int>(values[late_rank]));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
