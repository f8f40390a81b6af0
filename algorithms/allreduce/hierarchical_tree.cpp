// Hierarchical MPI_Allreduce over a tree of nodes: a reduction inside each node to its leader, the lowest rank; each
// leader adds what comes from the nodes below it and passes the sum up; the result comes down the same way, and in each
// node by a broadcast (Mohammadalizadehbakhtevari 2021, 7.2.4: the cluster-wide extension of the arrival-aware
// algorithms).
//
// Arrival: a node's sum is complete when its last rank has come, and sets out at once. Under PAPAYA_ORDER=arrival the
// nodes below are taken as their notifications come, so after the last node's one message up, one addition and the way
// down are left; otherwise in their order. With up to `radix` + 1 nodes the tree is a star: one hop up, one down,
// 2(N-1) messages in all, fewer than any exchange among all nodes.
//
// The leader need not be the node's first arrival: what the others have combined while they waited is there when the
// lowest rank comes, and nothing can leave the node before its last rank has come, whoever speaks for it.
//
// The message goes in chunks of `chunk_bytes`, two under way: while one is between the nodes, the node reduces the
// next.
//
// Order: ranks of a node first, in rank order, then its own sum with those of the nodes below, in their order; the same
// bits on all ranks, and without PAPAYA_ORDER=arrival in every run. The operation must be commutative, as the
// predefined ones are.
//
// Cost, N nodes: 2 ceil(log_radix N) latencies of the network, S bytes up and `radix` S bytes down for each node; in
// each node a reduction and a broadcast of S bytes.

#include <algorithm>
#include <cstring>
#include <vector>

#include "algorithms/costs.hpp"
#include "algorithms/hierarchy.hpp"
#include "algorithms/streams.hpp"

namespace papaya {

namespace {

constexpr std::size_t most_element_bytes = 1024;

enum ParameterIndex : std::size_t { chunk_bytes, radix };

std::size_t chunk_bytes_of(const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) noexcept {
  return Streams::fair_chunk(layout.leaders(), std::min(capacity, static_cast<std::size_t>(values[chunk_bytes])));
}
NodePhase::Choice reduction_for(std::size_t chunk) {
  return {Collective::reduce, chunk};
}
NodePhase::Choice broadcast_for(std::size_t chunk) {
  return {Collective::bcast, chunk};
}

class HierarchicalTree final : public Prepared {
 public:
  HierarchicalTree(const Team& team, std::size_t chunk, std::size_t region_chunk, int radix)
      : team_(team),
        position_(team),
        reduction_(team, reduction_for(region_chunk), team.region, this),
        broadcast_(team, broadcast_for(region_chunk),
                   team.region +
                       NodePhase::region_bytes(reduction_for(region_chunk), static_cast<int>(position_.ranks().size())),
                   this),
        streams_(team, Streams::Shape::among_leaders(team.layout(), chunk)),
        chunk_bytes_(chunk) {
    const std::vector<int> leaders = lowest_ranks(position_.nodes);
    const int all = position_.nodes.count();
    if (position_.node != 0) above_ = leaders[static_cast<std::size_t>((position_.node - 1) / radix)];
    for (int i = 1; i <= radix; ++i)
      if (const std::int64_t node = std::int64_t{position_.node} * radix + i; node < all)
        below_.push_back(leaders[static_cast<std::size_t>(node)]);
  }

  bool run(const Operands& operands, wait::Site& site) override {
    const std::size_t most = chunk_bytes_ / operands.reduction->element_bytes;
    const std::size_t chunks = (operands.count + most - 1) / most;
    const std::size_t behind = chunks > 1 ? 1 : 0;
    for (std::size_t i = 0; i < chunks + behind; ++i) {
      if (i < chunks) gather(operands, i * most, std::min(most, operands.count - i * most), site);
      if (i >= behind)
        spread(operands, (i - behind) * most, std::min(most, operands.count - (i - behind) * most), site);
    }
    team_.wire->release_sources();
    return true;
  }

  bool is_missing(int rank) const override {
    if (position_.nodes.of_rank[static_cast<std::size_t>(rank)] != position_.node)
      return std::find(awaited_.begin(), awaited_.end(), rank) != awaited_.end();
    const int local = position_.rank_in_node(rank);
    return reduction_.is_missing(local) || broadcast_.is_missing(local);
  }

 private:
  bool leads() const noexcept { return position_.rank == 0; }

  void gather(const Operands& operands, std::size_t first, std::size_t count, wait::Site& site) {
    Operands chunk = chunk_of(operands, first, count);
    auto* const sum = static_cast<std::byte*>(chunk.receive);
    if (!leads()) chunk.receive = nullptr;
    reduction_.run(chunk, site);
    if (!leads()) return;
    if (reduction_.is_alone() && chunk.deposited != nullptr) chunk.deposited(chunk.context);
    const void* own = reduction_.is_alone() ? chunk.send : sum;
    awaited_ = below_;
    while (!awaited_.empty()) {
      const auto has_come = [&](int node) { return streams_.may_receive(node); };
      const auto ready = [&] {
        return team_.arrival_order ? std::any_of(awaited_.begin(), awaited_.end(), has_come)
                                   : has_come(awaited_.front());
      };
      if (!ready()) team_.wire->wait(*team_.policy, site, ready, static_cast<Prepared*>(this));
      const auto next =
          team_.arrival_order ? std::find_if(awaited_.begin(), awaited_.end(), has_come) : awaited_.begin();
      operands.reduction->combine(*operands.reduction, own, streams_.front(*next), sum, count);
      streams_.release(*next);
      own = sum;
      awaited_.erase(next);
    }
    if (above_ >= 0)
      send(above_, own, chunk.bytes, site);
    else if (own != sum)
      std::memcpy(sum, own, chunk.bytes);
  }

  void spread(const Operands& operands, std::size_t first, std::size_t count, wait::Site& site) {
    Operands chunk = chunk_of(operands, first, count);
    chunk.deposited = nullptr;
    chunk.send = nullptr;
    if (leads()) {
      if (above_ >= 0) {
        wait_for(
            above_, [&] { return streams_.may_receive(above_); }, site);
        team_.wire->release_sources();  // the sum has gone up from there
        std::memcpy(chunk.receive, streams_.front(above_), chunk.bytes);
        streams_.release(above_);
      }
      for (const int node : below_) send(node, chunk.receive, chunk.bytes, site);
      chunk.send = chunk.receive;
      chunk.receive = nullptr;
    }
    broadcast_.run(chunk, site);
  }

  void send(int to, const void* from, std::size_t bytes, wait::Site& site) {
    wait_for(
        to, [&] { return streams_.may_send(to); }, site);
    streams_.send(to, from, bytes);
  }

  template <class Ready>
  void wait_for(int rank, Ready&& ready, wait::Site& site) {
    if (ready()) return;
    awaited_.assign(1, rank);
    team_.wire->wait(*team_.policy, site, ready, static_cast<Prepared*>(this));
    awaited_.clear();
  }

  const Team team_;
  const NodePosition position_;
  NodePhase reduction_;
  NodePhase broadcast_;
  Streams streams_;
  const std::size_t chunk_bytes_;
  int above_ = -1;          // the leader of the node above
  std::vector<int> below_;  // of those below
  std::vector<int> awaited_;
};

constexpr Parameter parameters[] = {
    {"chunk_bytes", usual_chunk_bytes, 4096, 1 << 20, "bytes that travel at a time, or fewer with many ranks",
     "part_bytes"},
    {"radix", 8, 1, 1024, "nodes below each node", "fanout"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::allreduce,
    .name = "hierarchical_tree",
    .summary =
        "a reduction in each node, up and down a tree of nodes, a broadcast in each node; nodes by arrival if allowed",
    .source = "Mohammadalizadehbakhtevari 2021, section 7.2.4",
    .one_node = false,
    .predefined_only = true,
    .serves_declines = false,
    .max_element_bytes = most_element_bytes,
    .parameters = parameters,
    // The phases on the nodes, and for each level of the tree: alpha up and down, f S bytes into and out of a node
    // above f others, f S gamma. Levels below the first count as far as they are full. While one chunk is between the
    // nodes they reduce the next, and what goes up overlaps with what comes down.
    .call_ns =
        [](const NetworkCall& call) {
          constexpr double default_radix = 8;
          constexpr auto default_chunk_bytes = static_cast<double>(usual_chunk_bytes);
          const double chunk = std::min(1.0, default_chunk_bytes / std::max(call.bytes, 1.0));
          double latencies = 0;
          double first = 0;
          double others = 0;
          double width = 1;
          for (double left = call.nodes - 1; left > 0; left -= width) {
            const double below = std::min(default_radix, left);
            const double full = width == 1 ? 1 : std::min(1.0, left / (width * default_radix));
            latencies += 2 * call.latency_ns + (below - 1) * call.start_ns();
            first += full * (below * (2 * call.transfer_ns() + call.reduce_ns()) + call.copy_ns());
            others += full * (below * (call.transfer_ns() + call.reduce_ns()) + call.transfer_ns() + call.copy_ns());
            width *= default_radix;
          }
          const double node = costs::node_reduction_ns(call) + costs::node_broadcast_ns(call);
          const double root = std::min(default_radix, call.nodes - 1) * call.reduce_ns();
          return latencies + chunk * (first + node) + (1 - chunk) * std::max(others, node + root);
        },
    .segment = [](const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      return Streams::Shape::among_leaders(layout, chunk_bytes_of(layout, capacity, values)).segment();
    },
    .region_bytes =
        [](int ranks, std::size_t capacity, std::span<const std::int64_t> values) {
          const std::size_t chunk = Streams::region_chunk(capacity, values[chunk_bytes]);
          return NodePhase::region_bytes(reduction_for(chunk), ranks) +
                 NodePhase::region_bytes(broadcast_for(chunk), ranks);
        },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<HierarchicalTree>(team, chunk_bytes_of(team.layout(), capacity, values),
                                                Streams::region_chunk(capacity, values[chunk_bytes]),
                                                static_cast<int>(values[radix]));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
