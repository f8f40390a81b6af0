// Hierarchical MPI_Allgather: the ranks of a node gather their blocks in shared memory, the nodes' blocks go round a
// ring of one rank of each node, and each that has come is broadcast in the node. With several `leaders` each carries a
// part, in rings of their own (DPML: Bayatpour et al., SC'17): as many cores copy and send, if there are as many.
//
// Blocks go in chunks of at most `chunk_bytes`; a chunk of all ranks of a node is one message of the ring, or one of
// each leader's, which a leader passes on as soon as it has come. A leader waits for its message first, then takes part
// in the broadcasts of all leaders in their order; so none waits for one that waits for it.
//
// Cost, N nodes of q ranks and k leaders: N-1 latencies of the network, (N-1) q S bytes sent and received by each node,
// by k ranks; (N-1) k broadcasts in each node.

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "algorithms/costs.hpp"
#include "algorithms/hierarchy.hpp"
#include "algorithms/streams.hpp"

namespace papaya {

namespace {

constexpr std::int64_t most_chunk_bytes = 1 << 18;
// Of a message of the ring, where the number of leaders is not given: two lead if it takes one longer to copy than
// another broadcast takes the node, in simulation (docs/simulation.md). More gain nothing there.
constexpr std::size_t least_shared_bytes = 128 << 10;
constexpr int most_chosen_leaders = 2;

enum ParameterIndex : std::size_t { chunk_bytes, leaders };

std::size_t chunk_bytes_of(std::size_t capacity, std::span<const std::int64_t> values) noexcept {
  return in_lines(std::min(capacity, static_cast<std::size_t>(values[chunk_bytes])));
}
NodePhase::Choice gathering_for(std::size_t chunk) {
  return {Collective::allgather, chunk};
}
// Of a message of the ring, which holds at most a chunk of each rank.
NodePhase::Choice broadcast_for(int ranks, std::size_t chunk) {
  return {Collective::bcast, static_cast<std::size_t>(ranks) * chunk};
}

// A message of the ring is a chunk of each rank of a node.
Streams::Shape shape_of(const Layout& layout, std::size_t chunk) {
  return {.ranks = layout.ranks, .chunk_bytes = static_cast<std::size_t>(layout.largest_node()) * chunk, .writers = 1};
}

class HierarchicalAllgather final : public Prepared {
 public:
  HierarchicalAllgather(const Team& team, std::size_t chunk, std::int64_t wanted_leaders)
      : team_(team),
        position_(team),
        gathering_(team, gathering_for(chunk), team.region, this),
        // By what the region has been sized for: the ranks of this node.
        broadcast_(
            team, broadcast_for(static_cast<int>(position_.ranks().size()), chunk),
            team.region + NodePhase::region_bytes(gathering_for(chunk), static_cast<int>(position_.ranks().size())),
            this),
        streams_(team, shape_of(team.layout(), chunk)),
        chunk_bytes_(chunk),
        most_leaders_(most_leaders(position_.nodes, wanted_leaders)),
        is_chosen_(wanted_leaders == 0),
        largest_node_(static_cast<std::size_t>(team.layout().largest_node())),
        message_(largest_node_ * chunk) {
    const int all = position_.nodes.count();
    // The ring of those with this rank's number in their nodes.
    const auto on_node = [&](int node) {
      return position_.nodes
          .ranks[static_cast<std::size_t>(node)][static_cast<std::size_t>(std::min(position_.rank, most_leaders_ - 1))];
    };
    next_ = on_node((position_.node + 1) % all);
    previous_ = on_node((position_.node + all - 1) % all);
  }

  bool run(const Operands& operands, wait::Site& site) override {
    for (std::size_t offset = 0; offset < operands.bytes; offset += chunk_bytes_)
      run_chunk(operands, offset, std::min(chunk_bytes_, operands.bytes - offset), site);
    return true;
  }

  bool is_missing(int rank) const override {
    if (rank == missing_) return true;
    if (position_.nodes.of_rank[static_cast<std::size_t>(rank)] != position_.node) return false;
    const int local = position_.rank_in_node(rank);
    return gathering_.is_missing(local) || broadcast_.is_missing(local);
  }

 private:
  void run_chunk(const Operands& operands, std::size_t offset, std::size_t bytes, wait::Site& site) {
    const int all = position_.nodes.count();
    Operands chunk = operands;
    chunk.send = static_cast<const std::byte*>(operands.send) + offset;
    chunk.receive = message_.data();
    chunk.bytes = bytes;
    if (offset != 0) chunk.deposited = nullptr;
    if (gathering_.is_alone()) {
      std::memcpy(message_.data(), chunk.send, bytes);
      if (chunk.deposited != nullptr) chunk.deposited(chunk.context);
    } else {
      gathering_.run(chunk, site);
    }
    keep(operands, position_.node, offset, bytes);
    chunk.deposited = nullptr;
    const int lead = leaders_for(bytes);
    for (int step = 1; step < all; ++step) {
      const int origin = (position_.node - step + all) % all;
      // What came in the step before goes on.
      if (position_.rank < lead)
        pass_on(part_of((origin + 1) % all, position_.rank, lead, bytes), part_of(origin, position_.rank, lead, bytes),
                site);
      for (int leader = 0; leader < lead; ++leader) {
        const std::span<std::byte> part = part_of(origin, leader, lead, bytes);
        chunk.root = leader;
        chunk.bytes = part.size();
        chunk.send = position_.rank == leader ? part.data() : nullptr;
        chunk.receive = position_.rank == leader ? nullptr : part.data();
        broadcast_.run(chunk, site);
      }
      keep(operands, origin, offset, bytes);
    }
  }

  void pass_on(std::span<const std::byte> passed, std::span<std::byte> next, wait::Site& site) {
    wait_until([&] { return streams_.may_send(next_); }, next_, site);
    streams_.send(next_, passed.data(), passed.size());
    wait_until([&] { return streams_.may_receive(previous_); }, previous_, site);
    team_.wire->release_sources();
    std::memcpy(next.data(), streams_.front(previous_), next.size());
    streams_.release(previous_);
  }

  // Equal on all ranks.
  int leaders_for(std::size_t bytes) const noexcept {
    if (!is_chosen_) return most_leaders_;
    return largest_node_ * bytes < least_shared_bytes ? 1 : std::min(most_leaders_, most_chosen_leaders);
  }
  // Of the message that holds a chunk of each rank of `node`, what one of its leaders carries.
  std::span<std::byte> part_of(int node, int leader, int of, std::size_t bytes) noexcept {
    const auto first_of = [&](int one) {
      return ranks_of(node) * static_cast<std::size_t>(one) / static_cast<std::size_t>(of);
    };
    return std::span(message_).subspan(first_of(leader) * bytes, (first_of(leader + 1) - first_of(leader)) * bytes);
  }

  // Takes the message, of the ranks of `node`, to where their blocks belong.
  void keep(const Operands& operands, int node, std::size_t offset, std::size_t bytes) noexcept {
    const std::byte* from = message_.data();
    for (const int rank : position_.nodes.ranks[static_cast<std::size_t>(node)]) {
      std::memcpy(static_cast<std::byte*>(operands.receive) + static_cast<std::size_t>(rank) * operands.bytes + offset,
                  from, bytes);
      from += bytes;
    }
  }
  std::size_t ranks_of(int node) const noexcept { return position_.nodes.ranks[static_cast<std::size_t>(node)].size(); }

  template <class Ready>
  void wait_until(Ready&& ready, int rank, wait::Site& site) {
    if (ready()) return;
    missing_ = rank;
    team_.wire->wait(*team_.policy, site, ready, static_cast<Prepared*>(this));
    missing_ = -1;
  }

  const Team team_;
  const NodePosition position_;
  NodePhase gathering_;
  NodePhase broadcast_;
  Streams streams_;
  const std::size_t chunk_bytes_;
  const int most_leaders_;  // equal on all nodes
  const bool is_chosen_;    // how many lead, by the bytes of a chunk
  const std::size_t largest_node_;
  std::vector<std::byte> message_;  // a chunk of each rank of a node
  int next_;
  int previous_;
  int missing_ = -1;
};

constexpr Parameter parameters[] = {
    {"chunk_bytes", 16384, 64, most_chunk_bytes, "bytes of a block that travel at a time", "part_bytes"},
    {"leaders", 0, 0, 1024,
     "ranks of each node that write to other nodes; 0: two from 128 KiB of a message on, else one"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::allgather,
    .name = "hierarchical_allgather",
    .summary =
        "blocks are gathered in each node, go round a ring of one rank of each or several, and are broadcast "
        "in each node",
    .source = "Mohammadalizadehbakhtevari 2021, chapter 6: the same composition; Bayatpour et al. 2017 (DPML)",
    .one_node = false,
    .serves_declines = false,
    .parameters = parameters,
    .network_ns = [](const NetworkCall& call) { return (call.nodes - 1) * call.node_message_ns; },
    // On each node q blocks copied in and out; N-1 steps of a ring of alpha + q S beta, a copy out of the segment, a
    // broadcast and a copy to where the blocks belong.
    .call_ns =
        [](const NetworkCall& call) {
          const double blocks_ns = call.node_ranks * call.copy_ns();
          if (call.node_ranks <= 1) return (call.nodes - 1) * (call.message_ns + 2 * blocks_ns);
          return 2 * nominal_node_latency_ns + call.copy_ns() + 2 * blocks_ns +
                 (call.nodes - 1) * (call.node_message_ns + 2 * nominal_node_latency_ns + 4 * blocks_ns);
        },
    .segment = [](const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      return shape_of(layout, chunk_bytes_of(capacity, values)).segment();
    },
    .region_bytes =
        [](int ranks, std::size_t capacity, std::span<const std::int64_t> values) {
          const std::size_t chunk = chunk_bytes_of(capacity, values);
          return NodePhase::region_bytes(gathering_for(chunk), ranks) +
                 NodePhase::region_bytes(broadcast_for(ranks, chunk), ranks);
        },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<HierarchicalAllgather>(team, chunk_bytes_of(capacity, values), values[leaders]);
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
