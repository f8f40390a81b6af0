// Hierarchical MPI_Bcast: a binomial tree over the nodes, by one rank of each, then a broadcast inside the node. The
// root is its own node's leader, the lowest rank is any other node's.
//
// The message goes in chunks of `chunk_bytes`, which a leader passes on as they come: to the nodes below it, in
// whatever order those have room, and to its own. A late node holds up its leader's node and those below it once it is
// four chunks behind; the root leaves as soon as all chunks are on their way. With a small message nobody is held up:
// what finds no room, between nodes or in one, goes as messages of MPI's.
//
// Cost, N nodes: log2 N latencies of the network for the last one, S log2 N bytes sent by the root's node; in each node
// a broadcast of S bytes.

#include <algorithm>
#include <cstring>
#include <vector>

#include "algorithms/costs.hpp"
#include "algorithms/hierarchy.hpp"
#include "algorithms/patterns/binomial.hpp"
#include "algorithms/streams.hpp"

namespace papaya {

namespace {

constexpr std::int64_t most_chunk_bytes = 1 << 20;

std::size_t chunk_bytes_of(int ranks, std::size_t capacity, std::span<const std::int64_t> values) noexcept {
  return Streams::fair_chunk(ranks, Streams::region_chunk(capacity, values[0]));
}
NodePhase::Choice broadcast_for(std::size_t chunk) {
  return {Collective::bcast, chunk};
}

class HierarchicalBcast final : public Prepared {
 public:
  HierarchicalBcast(const Team& team, std::size_t chunk_bytes, std::size_t region_chunk)
      : team_(team),
        position_(team),
        broadcast_(team, broadcast_for(region_chunk), team.region, this),
        streams_(team, {.ranks = team.size, .chunk_bytes = chunk_bytes, .writers = team.size}),
        leaders_(lowest_ranks(position_.nodes)),
        chunk_bytes_(chunk_bytes) {}

  bool run(const Operands& operands, wait::Site& site) override {
    const int root_node = position_.nodes.of_rank[static_cast<std::size_t>(operands.root)];
    const bool is_root = team_.rank == operands.root;
    const int local_root = root_node == position_.node ? position_.rank_in_node(operands.root) : 0;
    const std::size_t chunks = (operands.bytes + chunk_bytes_ - 1) / chunk_bytes_;
    auto* const message = is_root ? const_cast<std::byte*>(static_cast<const std::byte*>(operands.send))
                                  : static_cast<std::byte*>(operands.receive);
    const bool may_fall_back = streams_.may_fall_back(operands.bytes);
    Operands chunk = operands;
    chunk.root = local_root;
    chunk.deposited = nullptr;
    chunk.waits = !may_fall_back;
    const auto take_chunk = [&](std::size_t i) {
      chunk.bytes = bytes_of(operands, i);
      const bool leads = position_.rank == local_root;
      std::byte* const at = message + i * chunk_bytes_;
      chunk.send = leads ? at : nullptr;
      chunk.receive = leads ? nullptr : at;
      if (broadcast_.try_to_run(chunk, site)) return;
      if (!leads) return team_.node_messages->receive(local_root, at, chunk.bytes);
      for (int other = 0; other < static_cast<int>(position_.ranks().size()); ++other)
        if (other != local_root) team_.node_messages->begin_send(other, at, chunk.bytes);
    };
    if (!is_root && operands.deposited != nullptr) operands.deposited(operands.context);
    if (position_.rank != local_root) {
      for (std::size_t i = 0; i < chunks; ++i) take_chunk(i);
      return true;
    }

    // Nodes are numbered from the root's.
    const int all = position_.nodes.count();
    const int mine = (position_.node - root_node + all) % all;
    const auto leader = [&](int node) { return leaders_[static_cast<std::size_t>((node + root_node) % all)]; };
    const int parent = mine == 0 ? -1 : patterns::binomial_parent(mine);
    const int source = parent < 0 ? -1 : parent == 0 ? operands.root : leader(parent);
    below_.clear();
    patterns::for_each_binomial_child(mine, all, [&](int child) { below_.push_back({leader(child), 0}); });
    std::size_t there = is_root ? chunks : 0;
    std::size_t taken = 0;
    const auto may_receive = [&] { return there < chunks && streams_.may_receive(source); };
    const auto may_send = [&](const Below& below) {
      return below.sent < there && streams_.may_send(below.rank, may_fall_back);
    };
    const auto is_open = [&](const Below& below) { return below.sent < chunks; };
    while (there < chunks || taken < chunks || std::any_of(below_.begin(), below_.end(), is_open)) {
      bool moved = false;
      if (may_receive()) {
        std::memcpy(message + there * chunk_bytes_, streams_.front(source), bytes_of(operands, there));
        streams_.release(source);
        ++there;
        moved = true;
      }
      for (Below& below : below_)
        if (may_send(below)) {
          streams_.send(below.rank, message + below.sent * chunk_bytes_, bytes_of(operands, below.sent), may_fall_back);
          ++below.sent;
          moved = true;
        }
      // What is on its way to other nodes first: it has farther to go.
      if (!moved && taken < there) {
        take_chunk(taken++);
        moved = true;
      }
      if (moved) continue;
      missing_ = there < chunks ? source : std::find_if(below_.begin(), below_.end(), is_open)->rank;
      team_.wire->wait(
          *team_.policy, site, [&] { return may_receive() || std::any_of(below_.begin(), below_.end(), may_send); },
          static_cast<Prepared*>(this));
      missing_ = -1;
    }
    streams_.release_sources(site, static_cast<Prepared*>(this));
    if (team_.node_messages != nullptr && !team_.node_messages->are_sent())
      team_.wire->wait(
          *team_.policy, site, [&] { return team_.node_messages->are_sent(); }, static_cast<Prepared*>(this));
    if (is_root && operands.deposited != nullptr) operands.deposited(operands.context);
    return true;
  }

  bool may_end() noexcept override { return streams_.may_end(); }
  bool is_missing(int rank) const override {
    return rank == missing_ || (position_.nodes.of_rank[static_cast<std::size_t>(rank)] == position_.node &&
                                broadcast_.is_missing(position_.rank_in_node(rank)));
  }

 private:
  struct Below {
    int rank;
    std::size_t sent;  // chunks
  };

  std::size_t bytes_of(const Operands& operands, std::size_t i) const noexcept {
    return std::min(chunk_bytes_, operands.bytes - i * chunk_bytes_);
  }

  const Team team_;
  const NodePosition position_;
  NodePhase broadcast_;
  Streams streams_;
  const std::vector<int> leaders_;
  const std::size_t chunk_bytes_;
  std::vector<Below> below_;
  int missing_ = -1;
};

constexpr Parameter parameters[] = {
    {"chunk_bytes", usual_chunk_bytes, Streams::least_chunk_bytes, most_chunk_bytes,
     "bytes that travel at a time, or fewer with many ranks", "part_bytes"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::bcast,
    .name = "hierarchical_bcast",
    .summary = "a binomial tree over the nodes by one rank of each, a broadcast in each node, in chunks",
    .source = "Mohammadalizadehbakhtevari 2021, chapter 6: the same composition",
    .one_node = false,
    .serves_declines = false,
    .parameters = parameters,
    .network_ns = [](const NetworkCall& call) { return call.log2_nodes() * call.message_ns; },
    // Down a binomial tree of the nodes in chunks, a copy out of the segment at each step, then the phase on the nodes.
    .call_ns =
        [](const NetworkCall& call) {
          const double chunk_bytes =
              static_cast<double>(Streams::fair_chunk(static_cast<int>(call.ranks), usual_chunk_bytes));
          const double chunk = std::min(1.0, chunk_bytes / std::max(call.bytes, 1.0));
          const double node = costs::node_broadcast_ns(call);
          return costs::binomial_ns(call, call.log2_nodes(), chunk_bytes, call.copy_ns() + (1 - chunk) * node) +
                 chunk * node;
        },
    .segment = [](const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      return Streams::Shape{
          .ranks = layout.ranks, .chunk_bytes = chunk_bytes_of(layout.ranks, capacity, values), .writers = layout.ranks}
          .segment();
    },
    .region_bytes =
        [](int ranks, std::size_t capacity, std::span<const std::int64_t> values) {
          return NodePhase::region_bytes(broadcast_for(Streams::region_chunk(capacity, values[0])), ranks);
        },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<HierarchicalBcast>(team, chunk_bytes_of(team.size, capacity, values),
                                                 Streams::region_chunk(capacity, values[0]));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
