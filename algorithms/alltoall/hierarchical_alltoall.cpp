// Hierarchical MPI_Alltoall for small blocks: the ranks of a node put their blocks together in shared memory, each node
// sends one message to each other node, and each message that has come is broadcast in the node, where every rank takes
// its own blocks. N(N-1) messages between N nodes of q ranks, where notified_alltoall sends q^2 as many. Ranks of a
// node take turns with the messages, so that as many cores copy and send: the one for the node i further on is number
// (i-1) mod k of k leaders, at both ends.
//
// Blocks go in fragments, so that a message, the fragments from all ranks of one node to all of another, is at most
// `chunk_bytes`. Messages are sent to the next node first, and taken from the one before first.
//
// Cost: one latency of the network, (N-1) q^2 S bytes sent and received by each node, by k ranks; in a node q p S bytes
// copied in and out by each rank.

#include <algorithm>
#include <cstring>
#include <vector>

#include "algorithms/costs.hpp"
#include "algorithms/hierarchy.hpp"
#include "algorithms/streams.hpp"

namespace papaya {

namespace {

constexpr std::size_t largest_block = 32768;
// Of a message between two nodes, where the number of leaders is not given: all lead if one would take longer to put
// messages together and to copy them than others take to notice that one has come, in simulation (docs/simulation.md).
constexpr std::size_t least_shared_bytes = 8 << 10;

std::size_t message_of(std::span<const std::int64_t> values) noexcept {
  return in_lines(static_cast<std::size_t>(values[0]));
}
// At least a byte of each block of the largest node's.
std::size_t most_message(int largest_node, std::size_t message) noexcept {
  const auto ranks = static_cast<std::size_t>(largest_node);
  return std::max(message, ranks * ranks);
}
// Larger calls go in fragments.
constexpr NodePhase::Choice gathering = {Collective::allgather, 131072};
constexpr NodePhase::Choice broadcast = {Collective::bcast, 131072};

class HierarchicalAlltoall final : public Prepared {
 public:
  HierarchicalAlltoall(const Team& team, std::size_t message_bytes, std::int64_t wanted_leaders)
      : team_(team),
        position_(team),
        gathering_(team, gathering, team.region, this),
        broadcast_(team, broadcast, team.region + NodePhase::region_bytes(gathering, size_of(position_.node)), this),
        most_leaders_(most_leaders(position_.nodes, wanted_leaders)),
        is_chosen_(wanted_leaders == 0) {
    const auto most = static_cast<std::size_t>(team.layout().largest_node());
    fragment_bytes_ = std::max<std::size_t>(message_bytes / (most * most), 1);
    message_.resize(most * most * fragment_bytes_);
    streams_ = std::make_unique<Streams>(team, Streams::Shape::among_leaders(team.layout(), message_.size()));
    packed_.resize(static_cast<std::size_t>(team.size) * std::min(fragment_bytes_, largest_block));
    gathered_.resize(static_cast<std::size_t>(size_of(position_.node)) * packed_.size());
  }

  bool run(const Operands& operands, wait::Site& site) override {
    const std::size_t most = std::min(fragment_bytes_, largest_block);
    for (std::size_t offset = 0; offset < operands.bytes; offset += most)
      run_fragment(operands, offset, std::min(most, operands.bytes - offset), site);
    return true;
  }

  bool is_missing(int rank) const override {
    if (rank == missing_) return true;
    if (position_.nodes.of_rank[static_cast<std::size_t>(rank)] != position_.node) return false;
    const int local = position_.rank_in_node(rank);
    return gathering_.is_missing(local) || broadcast_.is_missing(local);
  }

 private:
  void run_fragment(const Operands& operands, std::size_t offset, std::size_t bytes, wait::Site& site) {
    const auto* const send = static_cast<const std::byte*>(operands.send);
    Operands fragment = operands;
    if (bytes != operands.bytes) {
      for (int to = 0; to < team_.size; ++to)
        std::memcpy(packed_.data() + at(to, bytes), send + at(to, operands.bytes) + offset, bytes);
      fragment.send = packed_.data();
    }
    fragment.receive = gathered_.data();
    fragment.bytes = static_cast<std::size_t>(team_.size) * bytes;
    if (offset != 0) fragment.deposited = nullptr;
    if (gathering_.is_alone()) {
      std::memcpy(gathered_.data(), fragment.send, fragment.bytes);
      if (fragment.deposited != nullptr) fragment.deposited(fragment.context);
    } else {
      gathering_.run(fragment, site);
    }
    keep(operands, position_.node, gathered_.data(), fragment.bytes, at(team_.rank, bytes), offset, bytes);

    const int all = position_.nodes.count();
    const int leaders = leaders_for(bytes);
    const auto leader_for = [leaders](int distance) { return (distance - 1) % leaders; };
    for (int i = 1; i < all; ++i)
      if (position_.rank == leader_for(i)) send_to((position_.node + i) % all, bytes, site);
    fragment.deposited = nullptr;
    for (int i = 1; i < all; ++i) {
      const int origin = (position_.node - i + all) % all;
      fragment.root = leader_for(i);
      const bool leads = position_.rank == fragment.root;
      const int leader = peer_on(origin);
      const std::size_t row = at(size_of(position_.node), bytes);  // from one rank there to all here
      fragment.bytes = at(size_of(origin), row);
      const std::byte* message = message_.data();
      if (leads) {
        wait_until([&] { return streams_->may_receive(leader); }, leader, site);
        message = streams_->front(leader);
      }
      fragment.send = leads ? message : nullptr;
      fragment.receive = leads ? nullptr : message_.data();
      broadcast_.run(fragment, site);
      keep(operands, origin, message, row, at(position_.rank, bytes), offset, bytes);
      if (leads) streams_->release(leader);
    }
  }

  // What the ranks of this node have for those of another.
  void send_to(int node, std::size_t bytes, wait::Site& site) {
    const int leader = peer_on(node);
    wait_until([&] { return streams_->may_send(leader); }, leader, site);
    std::byte* to = message_.data();
    for (int local = 0; local < size_of(position_.node); ++local)
      for (const int rank : position_.nodes.ranks[static_cast<std::size_t>(node)]) {
        std::memcpy(to, gathered_.data() + at(local, at(team_.size, bytes)) + at(rank, bytes), bytes);
        to += bytes;
      }
    streams_->send(leader, message_.data(), static_cast<std::size_t>(to - message_.data()));
    team_.wire->release_sources();
  }

  // This rank's fragments of a message from the ranks of `node`: a row for each of them, in which they begin at
  // `column`.
  void keep(const Operands& operands, int node, const std::byte* message, std::size_t row, std::size_t column,
            std::size_t offset, std::size_t bytes) noexcept {
    auto* const receive = static_cast<std::byte*>(operands.receive);
    for (const int rank : position_.nodes.ranks[static_cast<std::size_t>(node)]) {
      std::memcpy(receive + at(rank, operands.bytes) + offset, message + column, bytes);
      message += row;
    }
  }

  // Equal on all ranks.
  int leaders_for(std::size_t bytes) const noexcept {
    const auto most = static_cast<std::size_t>(team_.layout().largest_node());
    return is_chosen_ && most * most * bytes < least_shared_bytes ? 1 : most_leaders_;
  }
  // With this leader's number on another node.
  int peer_on(int node) const noexcept {
    return position_.nodes
        .ranks[static_cast<std::size_t>(node)][static_cast<std::size_t>(std::min(position_.rank, most_leaders_ - 1))];
  }

  static std::size_t at(int number, std::size_t bytes) noexcept { return static_cast<std::size_t>(number) * bytes; }
  int size_of(int node) const noexcept {
    return static_cast<int>(position_.nodes.ranks[static_cast<std::size_t>(node)].size());
  }

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
  std::unique_ptr<Streams> streams_;
  const int most_leaders_;  // equal on all nodes
  const bool is_chosen_;    // how many lead, by the bytes of a message
  std::size_t fragment_bytes_;
  std::vector<std::byte> message_;   // to or from another node
  std::vector<std::byte> packed_;    // this rank's fragments
  std::vector<std::byte> gathered_;  // those of all ranks of the node
  int missing_ = -1;
};

constexpr Parameter parameters[] = {
    {"chunk_bytes", 65536, 4096, 1 << 20, "bytes of a message between two nodes", "message_bytes"},
    {"leaders", 0, 0, 1024,
     "ranks of each node that write to other nodes in turn; 0: as many as all nodes have for messages of 8 KiB or "
     "more, "
     "else one"},
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
    // together and taken out by the leaders in turn, and a broadcast on the node of each message.
    .call_ns =
        [](const NetworkCall& call) {
          const double rows = call.node_ranks * (call.ranks - call.node_ranks);
          const double network = rows * call.transfer_ns();
          const double node = call.node_ranks <= 1 ? rows * call.copy_ns()
                                                   : nominal_node_latency_ns * (call.nodes + 1) +
                                                         (1 + call.node_ranks) * call.ranks * call.copy_ns() +
                                                         (2 / call.node_ranks + 2) * rows * call.copy_ns();
          return call.latency_ns + (call.nodes - 1) / std::max(1.0, call.node_ranks) * call.start_ns() + network + node;
        },
    .segment = [](const Layout& layout, std::size_t, std::span<const std::int64_t> values) -> SegmentShape {
      return Streams::Shape::among_leaders(layout, most_message(layout.largest_node(), message_of(values))).segment();
    },
    .region_bytes =
        [](int ranks, std::size_t, std::span<const std::int64_t>) {
          return NodePhase::region_bytes(gathering, ranks) + NodePhase::region_bytes(broadcast, ranks);
        },
    .prepare = [](const Team& team, std::size_t, std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<HierarchicalAlltoall>(team, message_of(values), values[1]);
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
