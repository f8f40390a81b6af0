// Hierarchical MPI_Alltoall for small blocks: a message of leaders_exchange.hpp holds the blocks of all ranks of a node
// for all of another.
//
// Cost, N nodes of q ranks and k leaders, p ranks in all: one latency of the network, (N-1) q^2 S bytes sent and
// received by each node, by k ranks; in a node q p S bytes copied in and out by each rank.

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "algorithms/costs.hpp"
#include "algorithms/leaders_exchange.hpp"

namespace papaya {

namespace {

constexpr std::size_t largest_block = 32768;
// All lead if one would take longer to put messages together and to copy them than others take to notice that one has
// come, in simulation (docs/simulation.md).
constexpr std::size_t least_shared_bytes = 8 << 10;

enum ParameterIndex : std::size_t { chunk_bytes, leaders };

std::size_t piece_for(const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) noexcept {
  const auto most = static_cast<std::size_t>(layout.largest_node());
  return LeadersExchange::piece_for(layout, values[chunk_bytes], most * most, capacity);
}

// Of the blocks for one node of this size; what a rank has for all nodes is gathered in fragments.
std::size_t gathered_bytes_of(std::size_t node_ranks, std::size_t capacity) noexcept {
  return LeadersExchange::gathered_for(node_ranks * capacity);
}

LeadersExchange::Shape shape_for(const Team& team, std::size_t capacity, std::span<const std::int64_t> values) {
  const Layout layout = team.layout();
  // Of what a node's ranks give each other.
  constexpr std::size_t memory = 4 << 20;
  const auto most = static_cast<std::size_t>(layout.largest_node());
  const std::size_t piece = piece_for(layout, capacity, values);
  const std::size_t fragment = std::min({LeadersExchange::pieces_at_once * piece / (most * most),
                                         memory / (most * static_cast<std::size_t>(layout.ranks)), largest_block});
  return {.piece_bytes = piece,
          .fragment_bytes = std::max<std::size_t>(fragment, 1),
          .leaders = values[leaders],
          .shared_bytes = least_shared_bytes,
          .shared_leaders = std::numeric_limits<int>::max(),
          .gathered_bytes = gathered_bytes_of(NodePosition(team).ranks().size(), capacity)};
}

class HierarchicalAlltoall final : public LeadersExchange {
 public:
  HierarchicalAlltoall(const Team& team, const Shape& shape) : LeadersExchange(team, shape) {
    packed_.resize(given_bytes(shape.fragment_bytes));
    allocate();
  }

 private:
  std::size_t given_bytes(std::size_t bytes) const noexcept override { return at(team_.size, bytes); }
  const std::byte* give(const Operands& operands, const Fragment& fragment) override {
    const auto* const send = static_cast<const std::byte*>(operands.send);
    if (fragment.bytes == operands.bytes) return send;
    for (int to = 0; to < team_.size; ++to)
      std::memcpy(packed_.data() + at(to, fragment.bytes), send + at(to, operands.bytes) + fragment.offset,
                  fragment.bytes);
    return packed_.data();
  }
  std::size_t message_bytes(int from, int to, std::size_t bytes) const noexcept override {
    return ranks_of(from) * ranks_of(to) * bytes;
  }
  // A row for each rank of this node: its blocks for those of the other.
  const std::byte* message_for(int node, const std::byte* given, const Fragment& fragment,
                               std::byte* room) noexcept override {
    std::byte* to = room;
    for (std::size_t local = 0; local < position_.ranks().size(); ++local)
      for (const int rank : position_.nodes.ranks[static_cast<std::size_t>(node)]) {
        std::memcpy(to, given + local * given_bytes(fragment.bytes) + at(rank, fragment.bytes), fragment.bytes);
        to += fragment.bytes;
      }
    return room;
  }
  void keep_own(const Operands& operands, const std::byte* given, const Fragment& fragment) noexcept override {
    take(operands, position_.node, given + at(team_.rank, fragment.bytes), given_bytes(fragment.bytes), fragment);
  }
  void keep(const Operands& operands, int origin, const std::byte* message,
            const Fragment& fragment) noexcept override {
    take(operands, origin, message + at(position_.rank, fragment.bytes),
         at(static_cast<int>(ranks_of(position_.node)), fragment.bytes), fragment);
  }

  // One block in each row of a rank of `node`.
  void take(const Operands& operands, int node, const std::byte* block, std::size_t row_bytes,
            const Fragment& fragment) noexcept {
    auto* const receive = static_cast<std::byte*>(operands.receive) + fragment.offset;
    for (const int rank : position_.nodes.ranks[static_cast<std::size_t>(node)]) {
      std::memcpy(receive + at(rank, operands.bytes), block, fragment.bytes);
      block += row_bytes;
    }
  }

  static std::size_t at(int number, std::size_t bytes) noexcept { return static_cast<std::size_t>(number) * bytes; }

  std::vector<std::byte> packed_;  // this rank's blocks of a fragment
};

constexpr Parameter parameters[] = {
    {"chunk_bytes", usual_chunk_bytes, 4096, 1 << 20, "bytes of a message between two nodes, or fewer with many nodes",
     "message_bytes"},
    {"leaders", 0, 0, 1024,
     "ranks of each node that write to other nodes in turn; 0: one for every 4 other nodes, all with messages of 8 KiB "
     "or more"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::alltoall,
    .name = "hierarchical_alltoall",
    .summary = "blocks are combined in each node, one message goes to each other node; for small blocks",
    .source =
        "Iakymchuk et al. 2021, section IV-B, over the composition of Mohammadalizadehbakhtevari 2021, chapter 6; "
        "Bayatpour et al. 2017 (DPML)",
    .one_node = false,
    .serves_declines = false,
    .max_bytes = largest_block,
    .parameters = parameters,
    // Its transfers are notified_alltoall's, in (N-1) messages of a node.
    .network_ns =
        [](const NetworkCall& call) {
          return call.latency_ns + call.node_ranks * (call.ranks - call.node_ranks) * call.transfer_ns();
        },
    // On each node q p S bytes copied in and out by each rank; between nodes alpha and q (p-q) S bytes into each, put
    // together and taken out by the leaders in turn, and a broadcast on the node.
    .call_ns =
        [](const NetworkCall& call) {
          const double rows = call.node_ranks * (call.ranks - call.node_ranks);
          const double network = rows * call.transfer_ns();
          const double node = call.node_ranks <= 1
                                  ? rows * call.copy_ns()
                                  : 4 * nominal_node_latency_ns + (1 + call.node_ranks) * call.ranks * call.copy_ns() +
                                        (2 / call.node_ranks + 2) * rows * call.copy_ns();
          return call.latency_ns + (call.nodes - 1) / std::max(1.0, call.node_ranks) * call.start_ns() + network + node;
        },
    .segment = [](const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      return LeadersExchange::segment(layout, piece_for(layout, capacity, values));
    },
    .region_bytes =
        [](int ranks, std::size_t capacity, std::span<const std::int64_t>) {
          return LeadersExchange::region_bytes(ranks, gathered_bytes_of(static_cast<std::size_t>(ranks), capacity));
        },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<HierarchicalAlltoall>(team, shape_for(team, capacity, values));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
