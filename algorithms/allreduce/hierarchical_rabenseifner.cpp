// Hierarchical MPI_Allreduce (Mohammadalizadehbakhtevari 2021, chapter 6): a reduction to one rank of each node, its
// leader; reduce-scatter and allgather among the leaders (halving.hpp); a broadcast inside the node. Under skew a rank
// waits for those of its node first, and the nodes that are complete go on.
//
// The message goes in chunks of `chunk_bytes`, and the three phases overlap: while up to `chunks_in_flight` chunks are
// between the nodes, the node reduces the next one and takes the result of an earlier one. All ranks of a node take the
// phases in the same order, reduction of chunk i before broadcast of chunk i - chunks_in_flight + 1, so none waits for
// one that waits for it.
//
// Order: ranks of a node are combined first, in rank order, then the nodes, as halving.hpp has it: the same bits on all
// ranks and in every run. The operation must be commutative, as the predefined ones are, since a node's ranks need not
// follow each other.
//
// Cost, N nodes: 2(N-1)/N S bytes sent and received by each node, 2 log2 N latencies of the network; in each node a
// reduction and a broadcast of S bytes.

#include <algorithm>
#include <vector>

#include "algorithms/chunk_pipeline.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/halving.hpp"
#include "algorithms/hierarchy.hpp"

namespace papaya {

namespace {

constexpr std::int64_t most_chunk_bytes = 4 << 20;

enum ParameterIndex : std::size_t { chunk_bytes, recursive_doubling_bytes, chunks_in_flight };

std::size_t chunk_bytes_of(std::size_t capacity, std::span<const std::int64_t> values) {
  return std::max(std::min(capacity, static_cast<std::size_t>(values[chunk_bytes])), std::size_t{4096});
}

// There may be as many nodes as ranks.
Halving::Shape shape_for(int nodes, std::size_t capacity, std::span<const std::int64_t> values) {
  return {nodes, chunk_bytes_of(capacity, values), static_cast<int>(values[chunks_in_flight])};
}

NodePhase::Choice reduction_for(std::size_t chunk) {
  return {Collective::reduce, chunk};
}
NodePhase::Choice broadcast_for(std::size_t chunk) {
  return {Collective::bcast, chunk};
}

class HierarchicalRabenseifner final : public Prepared {
 public:
  HierarchicalRabenseifner(const Team& team, const Halving::Shape& shape, std::size_t chunk,
                           std::size_t recursive_doubling_bytes)
      : team_(team),
        position_(team),
        reduction_(team, reduction_for(chunk), team.region, this),
        broadcast_(
            team, broadcast_for(chunk),
            team.region + NodePhase::region_bytes(reduction_for(chunk), static_cast<int>(position_.ranks().size())),
            this),
        halving_(*team.wire, shape, lowest_ranks(position_.nodes), position_.node, recursive_doubling_bytes),
        chunks_(halving_, shape.depth, team.first_round - 1),
        chunk_bytes_(chunk) {}

  bool run(const Operands& operands, wait::Site& site) override {
    const std::size_t most = chunk_bytes_ / operands.reduction->element_bytes;
    const std::size_t chunks = (operands.count + most - 1) / most;
    const auto behind = static_cast<std::size_t>(halving_.shape().depth) - 1;
    for (std::size_t i = 0; i < chunks + behind; ++i) {
      if (i < chunks) reduce(operands, i * most, std::min(most, operands.count - i * most), site);
      if (i >= behind)
        broadcast(operands, (i - behind) * most, std::min(most, operands.count - (i - behind) * most), site);
    }
    team_.wire->release_sources();
    return true;
  }

  bool is_missing(int rank) const override {
    if (position_.nodes.of_rank[static_cast<std::size_t>(rank)] != position_.node)
      return rank == chunks_.awaited_rank();
    const int local = position_.rank_in_node(rank);
    return reduction_.is_missing(local) || broadcast_.is_missing(local);
  }

 private:
  bool leads() const noexcept { return position_.rank == 0; }

  void reduce(const Operands& operands, std::size_t first, std::size_t count, wait::Site& site) {
    Operands chunk = chunk_of(operands, first, count);
    const auto* const own = static_cast<const std::byte*>(chunk.send);
    auto* const result = static_cast<std::byte*>(chunk.receive);
    if (!leads()) {
      chunk.receive = nullptr;
      return reduction_.run(chunk, site);
    }
    reduction_.run(chunk, site);
    chunks_.begin(reduction_.is_alone() ? own : result, result, count, *operands.reduction);
    if (reduction_.is_alone() && chunk.deposited != nullptr) chunk.deposited(chunk.context);
  }

  void broadcast(const Operands& operands, std::size_t first, std::size_t count, wait::Site& site) {
    Operands chunk = chunk_of(operands, first, count);
    chunk.deposited = nullptr;
    chunk.send = nullptr;
    if (leads()) {
      if (!chunks_.advance())
        team_.wire->wait(
            *team_.policy, site, [this] { return chunks_.advance(); }, static_cast<Prepared*>(this));
      chunks_.end_oldest();
      chunk.send = chunk.receive;
      chunk.receive = nullptr;
    }
    broadcast_.run(chunk, site);
  }

  const Team team_;
  const NodePosition position_;
  NodePhase reduction_;
  NodePhase broadcast_;
  Halving halving_;
  ChunkPipeline<Halving> chunks_;
  const std::size_t chunk_bytes_;
};

constexpr Parameter parameters[] = {
    {"chunk_bytes", 256 << 10, 4096, most_chunk_bytes, "bytes of the message that are reduced at a time",
     "piece_bytes"},
    {"recursive_doubling_bytes", 2048, 0, 65536,
     "up to this size nodes exchange whole messages by recursive doubling, in half as many steps", "whole_bytes"},
    {"chunks_in_flight", 2, 1, 8, "chunks that are between the nodes at a time", "pieces_under_way"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::allreduce,
    .name = "hierarchical_rabenseifner",
    .old_name = "hierarchical_rsa",
    .summary =
        "a reduction in each node, Rabenseifner's algorithm among one rank of each, a broadcast in each node, "
        "overlapping",
    .source = "Mohammadalizadehbakhtevari 2021, chapter 6",
    .one_node = false,
    .predefined_only = true,
    .serves_declines = false,
    .max_element_bytes = Halving::most_element_bytes,
    .parameters = parameters,
    .network_ns =
        [](const NetworkCall& call) {
          return 2 * call.log2_nodes() * call.latency_ns + 2 * (call.nodes - 1) / call.nodes * call.transfer_ns();
        },
    // The phases on the nodes, and between them as rabenseifner's with one rank each.
    .call_ns =
        [](const NetworkCall& call) {
          constexpr double default_chunk_bytes = 256 << 10;
          constexpr double doubled_bytes = 2048;
          const auto [steps, is_folded] = costs::doubling(call.nodes);
          const double node = costs::node_reduction_ns(call) + costs::node_broadcast_ns(call);
          if (call.bytes <= doubled_bytes) return node + (steps + 2 * is_folded) * (call.message_ns + call.reduce_ns());
          const double fold = is_folded * 2 * call.message_ns;
          const double network = 2 * steps * call.latency_ns + 2 * costs::share(call.nodes) * call.transfer_ns() + fold;
          return costs::overlapped_ns(network, node + costs::share(call.nodes) * call.reduce_ns(),
                                      call.bytes / default_chunk_bytes);
        },
    .segment = [](const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      return shape_for(layout.leaders(), capacity, values).segment();
    },
    .region_bytes =
        [](int ranks, std::size_t capacity, std::span<const std::int64_t> values) {
          const std::size_t chunk = chunk_bytes_of(capacity, values);
          return NodePhase::region_bytes(reduction_for(chunk), ranks) +
                 NodePhase::region_bytes(broadcast_for(chunk), ranks);
        },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<HierarchicalRabenseifner>(team, shape_for(team.nodes->count(), capacity, values),
                                                        chunk_bytes_of(capacity, values),
                                                        static_cast<std::size_t>(values[recursive_doubling_bytes]));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
