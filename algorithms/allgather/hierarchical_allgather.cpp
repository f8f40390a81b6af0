// Hierarchical MPI_Allgather: a message of leaders_exchange.hpp holds the blocks of all ranks of a node, and goes to
// each other node. So the blocks of a node that comes early are everywhere when the last one comes.
//
// Cost, N nodes of q ranks and k leaders: one latency of the network, (N-1) q S bytes sent and received by each node,
// by k ranks, which begin (N-1)/k messages each; in a node q S bytes gathered, and (N-1) q S broadcast.

#include <algorithm>
#include <cstring>

#include "algorithms/costs.hpp"
#include "algorithms/leaders_exchange.hpp"

namespace papaya {

namespace {

constexpr std::int64_t most_chunk_bytes = 1 << 20;
// Two lead if it takes one longer to send and to copy than another broadcast takes the node, in simulation
// (docs/simulation.md). More gain nothing there.
constexpr std::size_t least_shared_bytes = 128 << 10;

enum ParameterIndex : std::size_t { chunk_bytes, leaders };

std::size_t piece_for(const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) noexcept {
  const auto blocks = static_cast<std::size_t>(layout.largest_node());
  return LeadersExchange::piece_for(layout, values[chunk_bytes], blocks, capacity);
}

LeadersExchange::Shape shape_for(const Layout& layout, std::size_t capacity,
                                 std::span<const std::int64_t> values) noexcept {
  const std::size_t piece = piece_for(layout, capacity, values);
  return {.piece_bytes = piece,
          .fragment_bytes = LeadersExchange::pieces_at_once * piece / static_cast<std::size_t>(layout.largest_node()),
          .leaders = values[leaders],
          .shared_bytes = least_shared_bytes,
          .shared_leaders = 2,
          .gathered_bytes = LeadersExchange::gathered_for(capacity)};
}

class HierarchicalAllgather final : public LeadersExchange {
 public:
  HierarchicalAllgather(const Team& team, const Shape& shape) : LeadersExchange(team, shape) { allocate(); }

 private:
  std::size_t given_bytes(std::size_t bytes) const noexcept override { return bytes; }
  const std::byte* give(const Operands& operands, const Fragment& fragment) override {
    return static_cast<const std::byte*>(operands.send) + fragment.offset;
  }
  std::size_t message_bytes(int from, int, std::size_t bytes) const noexcept override { return ranks_of(from) * bytes; }
  const std::byte* message_for(int, const std::byte* given, const Fragment&, std::byte*) noexcept override {
    return given;
  }
  void keep_own(const Operands& operands, const std::byte* given, const Fragment& fragment) noexcept override {
    keep(operands, position_.node, given, fragment);
  }
  void keep(const Operands& operands, int origin, const std::byte* message,
            const Fragment& fragment) noexcept override {
    auto* const receive = static_cast<std::byte*>(operands.receive) + fragment.offset;
    for (const int rank : position_.nodes.ranks[static_cast<std::size_t>(origin)]) {
      std::memcpy(receive + static_cast<std::size_t>(rank) * operands.bytes, message, fragment.bytes);
      message += fragment.bytes;
    }
  }
};

constexpr Parameter parameters[] = {
    {"chunk_bytes", usual_chunk_bytes, Streams::least_chunk_bytes, most_chunk_bytes,
     "bytes of a message between two nodes, or fewer with many nodes", "part_bytes"},
    {"leaders", 0, 0, 1024,
     "ranks of each node that write to other nodes in turn; 0: one for every 4 other nodes, two at least with messages "
     "of 128 KiB or more"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::allgather,
    .name = "hierarchical_allgather",
    .summary = "blocks are gathered in each node, go from each node to each other one, and are broadcast there",
    .source = "Mohammadalizadehbakhtevari 2021, chapter 6: the same composition; Bayatpour et al. 2017 (DPML)",
    .one_node = false,
    .serves_declines = false,
    .parameters = parameters,
    .network_ns =
        [](const NetworkCall& call) {
          return call.latency_ns + (call.nodes - 1) * call.node_ranks * call.transfer_ns();
        },
    // On each node q blocks copied in and out; alpha and (N-1) q S bytes into each node, a copy out of the segment by
    // the leaders in turn, a broadcast and a copy to where the blocks belong. A leader begins (N-1)/k messages.
    .call_ns =
        [](const NetworkCall& call) {
          const double away = (call.nodes - 1) * call.node_ranks;
          const double network = call.latency_ns + (call.nodes - 2) * call.start_ns() + away * call.transfer_ns();
          if (call.node_ranks <= 1) return network + 2 * away * call.copy_ns();
          return network + 4 * nominal_node_latency_ns + (1 + call.node_ranks) * call.copy_ns() +
                 (2 / call.node_ranks + 2) * away * call.copy_ns();
        },
    .segment = [](const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      return LeadersExchange::segment(layout, piece_for(layout, capacity, values));
    },
    .region_bytes =
        [](int ranks, std::size_t capacity, std::span<const std::int64_t>) {
          return LeadersExchange::region_bytes(ranks, LeadersExchange::gathered_for(capacity));
        },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<HierarchicalAllgather>(team, shape_for(team.layout(), capacity, values));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
