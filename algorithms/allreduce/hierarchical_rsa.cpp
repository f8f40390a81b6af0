// MPI_Allreduce in levels (Mohammadalizadehbakhtevari 2021, chapter 6): a reduction to one rank of each node, its
// leader; reduce-scatter and allgather among the leaders (halving.hpp); a broadcast inside the node. Under skew a rank
// waits for those of its node first, and the nodes that are complete go on.
//
// The message goes in pieces of `piece_bytes`, and the three phases overlap: while up to `pieces_under_way` pieces are
// between the nodes, the node reduces the next one and takes the result of an earlier one. All ranks of a node take the
// phases in the same order, reduction of piece i before broadcast of piece i - pieces_under_way + 1, so none waits for
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

#include "algorithms/halving.hpp"
#include "algorithms/hierarchy.hpp"

namespace papaya {

namespace {

constexpr std::int64_t most_piece_bytes = 4 << 20;

enum ParameterPlace : std::size_t { piece_bytes, whole_bytes, pieces_under_way };

std::size_t piece_of(std::size_t capacity, std::span<const std::int64_t> values) {
  return std::max(std::min(capacity, static_cast<std::size_t>(values[piece_bytes])), std::size_t{4096});
}

// There may be as many nodes as ranks.
Halving::Shape shape_for(int nodes, std::size_t capacity, std::span<const std::int64_t> values) {
  return {nodes, piece_of(capacity, values), static_cast<int>(values[pieces_under_way])};
}

NodePhase::Choice reduction_for(std::size_t piece) {
  return {Collective::reduce, piece};
}
NodePhase::Choice broadcast_for(std::size_t piece) {
  return {Collective::bcast, piece};
}

class HierarchicalRsa final : public Prepared {
 public:
  HierarchicalRsa(const Team& team, const Halving::Shape& shape, std::size_t piece, std::size_t whole)
      : team_(team),
        place_(team),
        reduction_(team, reduction_for(piece), team.region, this),
        broadcast_(team, broadcast_for(piece),
                   team.region + NodePhase::region_bytes(reduction_for(piece), static_cast<int>(place_.ranks().size())),
                   this),
        halving_(*team.wire, shape, lowest_ranks(place_.nodes), place_.node, whole),
        pieces_(halving_, team.first_round - 1),
        piece_bytes_(piece) {}

  bool run(const Operands& operands, wait::Site& site) override {
    const std::size_t most = piece_bytes_ / operands.reduction->element_bytes;
    const std::size_t pieces = (operands.count + most - 1) / most;
    const auto behind = static_cast<std::size_t>(halving_.shape().depth) - 1;
    for (std::size_t i = 0; i < pieces + behind; ++i) {
      if (i < pieces) reduce(operands, i * most, std::min(most, operands.count - i * most), site);
      if (i >= behind)
        broadcast(operands, (i - behind) * most, std::min(most, operands.count - (i - behind) * most), site);
    }
    team_.wire->release_sources();
    return true;
  }

  bool is_missing(int rank) const override {
    if (place_.nodes.of_rank[static_cast<std::size_t>(rank)] != place_.node) return rank == pieces_.awaited_rank();
    const int local = place_.rank_in_node(rank);
    return reduction_.is_missing(local) || broadcast_.is_missing(local);
  }

 private:
  bool leads() const noexcept { return place_.rank == 0; }

  void reduce(const Operands& operands, std::size_t first, std::size_t count, wait::Site& site) {
    Operands part = part_of(operands, first, count);
    const auto* const own = static_cast<const std::byte*>(part.send);
    auto* const result = static_cast<std::byte*>(part.receive);
    if (!leads()) {
      part.receive = nullptr;
      return reduction_.run(part, site);
    }
    reduction_.run(part, site);
    pieces_.begin(reduction_.is_alone() ? own : result, result, count, *operands.reduction);
    if (reduction_.is_alone() && part.deposited != nullptr) part.deposited(part.context);
  }

  void broadcast(const Operands& operands, std::size_t first, std::size_t count, wait::Site& site) {
    Operands part = part_of(operands, first, count);
    part.deposited = nullptr;
    part.send = nullptr;
    if (leads()) {
      if (!pieces_.advance())
        team_.wire->wait(
            *team_.policy, site, [this] { return pieces_.advance(); }, static_cast<Prepared*>(this));
      pieces_.end_oldest();
      part.send = part.receive;
      part.receive = nullptr;
    }
    broadcast_.run(part, site);
  }

  const Team team_;
  const Place place_;
  NodePhase reduction_;
  NodePhase broadcast_;
  Halving halving_;
  HalvingPipeline pieces_;
  const std::size_t piece_bytes_;
};

constexpr Parameter parameters[] = {
    {"piece_bytes", 256 << 10, 4096, most_piece_bytes, "bytes of the message that are reduced at a time"},
    {"whole_bytes", 2048, 0, 65536,
     "up to this size a message is exchanged whole between nodes, in half as many steps"},
    {"pieces_under_way", 2, 1, 8, "pieces that are between the nodes at a time"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::allreduce,
    .name = "hierarchical_rsa",
    .summary = "a reduction in each node, rsa among one rank of each, a broadcast in each node, overlapping",
    .source = "Mohammadalizadehbakhtevari 2021, chapter 6",
    .one_node = false,
    .predefined_only = true,
    .takes_vetoes = false,
    .max_element_bytes = Halving::most_element_bytes,
    .parameters = parameters,
    .network_ns =
        [](const NetworkCall& call) {
          return 2 * call.log2_nodes() * call.latency_ns + 2 * (call.nodes - 1) / call.nodes * call.transfer_ns();
        },
    .segment = [](const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      return shape_for(layout.leaders(), capacity, values).segment();
    },
    .region_bytes =
        [](int ranks, std::size_t capacity, std::span<const std::int64_t> values) {
          const std::size_t piece = piece_of(capacity, values);
          return NodePhase::region_bytes(reduction_for(piece), ranks) +
                 NodePhase::region_bytes(broadcast_for(piece), ranks);
        },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<HierarchicalRsa>(team, shape_for(team.nodes->count(), capacity, values),
                                               piece_of(capacity, values),
                                               static_cast<std::size_t>(values[whole_bytes]));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
