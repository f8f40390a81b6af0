// Hierarchical MPI_Reduce: a reduction inside each node to its leader, then over a binomial tree of the nodes. The root
// is its own node's leader, the lowest rank is any other node's.
//
// The message goes in chunks of `chunk_bytes`. A leader combines the chunks of the nodes below it with its own node's
// and passes them on; it leaves as soon as the nodes above have room for what is left, as do the other ranks of a node.
// With a small message they do not wait for room: what finds none goes as messages of MPI's.
//
// Order: ranks of a node are combined first, in rank order; then neighbouring nodes, neighbouring pairs of nodes, and
// so on: the same bits in every run and for every root. Under PAPAYA_ORDER=arrival the nodes below are taken as they
// come. The operation must be commutative, as the predefined ones are, since a node's ranks need not follow each other.
//
// Cost, N nodes: log2 N latencies of the network, S bytes sent by each node, S log2 N bytes received by the root's; in
// each node a reduction of S bytes.

#include <algorithm>
#include <cstring>
#include <new>
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
NodePhase::Choice reduction_for(std::size_t chunk) {
  return {Collective::reduce, chunk};
}

class HierarchicalReduce final : public Prepared {
 public:
  HierarchicalReduce(const Team& team, std::size_t chunk_bytes, std::size_t region_chunk)
      : team_(team),
        position_(team),
        reduction_(team, reduction_for(region_chunk), team.region, this),
        streams_(team, {.ranks = team.size, .chunk_bytes = chunk_bytes, .writers = team.size}),
        leaders_(lowest_ranks(position_.nodes)),
        chunk_bytes_(chunk_bytes),
        partial_(chunk_bytes + 64) {}

  bool run(const Operands& operands, wait::Site& site) override {
    const std::size_t element = operands.reduction->element_bytes;
    const std::size_t most = chunk_bytes_ / element;
    const int root_node = position_.nodes.of_rank[static_cast<std::size_t>(operands.root)];
    const bool is_root = team_.rank == operands.root;
    const int local_root = root_node == position_.node ? position_.rank_in_node(operands.root) : 0;
    const bool leads = position_.rank == local_root;
    const int all = position_.nodes.count();
    const auto leader = [&](int node) { return leaders_[static_cast<std::size_t>(node)]; };
    below_.clear();
    const int next = patterns::for_each_block(position_.node, all, root_node, [&](patterns::BlockPartner partner) {
      below_.push_back({leader(partner.participant), partner.is_right});
    });
    const int above = next == root_node ? operands.root : next < 0 ? -1 : leader(next);

    const bool may_fall_back = streams_.may_fall_back(operands.bytes);
    for (std::size_t first = 0; first < operands.count; first += most) {
      const std::size_t count = std::min(most, operands.count - first);
      Operands chunk = operands;
      chunk.send = static_cast<const std::byte*>(operands.send) + first * element;
      std::byte* const sum = is_root ? static_cast<std::byte*>(operands.receive) + first * element : partial();
      chunk.receive = leads ? sum : nullptr;
      chunk.count = count;
      chunk.bytes = count * element;
      chunk.root = local_root;
      chunk.waits = !may_fall_back;
      if (first != 0) chunk.deposited = nullptr;
      reduction_.run(chunk, site);
      const void* own = reduction_.is_alone() ? chunk.send : sum;
      if (reduction_.is_alone() && chunk.deposited != nullptr) chunk.deposited(chunk.context);
      if (!leads) continue;
      own = combine_those_below(own, sum, count, *operands.reduction, site);
      if (is_root) {
        if (own != sum) std::memcpy(sum, own, chunk.bytes);
      } else {
        wait_until([&] { return streams_.may_send(above, may_fall_back); }, above, site);
        streams_.send(above, own, chunk.bytes, may_fall_back);
        streams_.release_sources(site, static_cast<Prepared*>(this));
      }
    }
    return true;
  }

  bool may_end() noexcept override { return streams_.may_end(); }
  bool is_missing(int rank) const override {
    return rank == missing_ || (position_.nodes.of_rank[static_cast<std::size_t>(rank)] == position_.node &&
                                reduction_.is_missing(position_.rank_in_node(rank)));
  }

 private:
  struct Below {
    int rank;
    bool is_right;  // of what is combined
  };

  // A chunk of each of them; returns where the sum is.
  const void* combine_those_below(const void* own, std::byte* sum, std::size_t count, const Reduction& reduction,
                                  wait::Site& site) {
    awaited_ = below_;
    while (!awaited_.empty()) {
      const auto has_come = [&](const Below& one) { return streams_.may_receive(one.rank); };
      const auto ready = [&] {
        return team_.arrival_order ? std::any_of(awaited_.begin(), awaited_.end(), has_come)
                                   : has_come(awaited_.front());
      };
      wait_until(ready, awaited_.front().rank, site);
      const auto next =
          team_.arrival_order ? std::find_if(awaited_.begin(), awaited_.end(), has_come) : awaited_.begin();
      const void* const theirs = streams_.front(next->rank);
      reduction.combine(reduction, next->is_right ? own : theirs, next->is_right ? theirs : own, sum, count);
      streams_.release(next->rank);
      own = sum;
      awaited_.erase(next);
    }
    return own;
  }

  template <class Ready>
  void wait_until(Ready&& ready, int rank, wait::Site& site) {
    if (ready()) return;
    missing_ = rank;
    team_.wire->wait(*team_.policy, site, ready, static_cast<Prepared*>(this));
    missing_ = -1;
  }

  std::byte* partial() noexcept {
    return partial_.data() + (64 - reinterpret_cast<std::uintptr_t>(partial_.data()) % 64) % 64;
  }

  const Team team_;
  const NodePosition position_;
  NodePhase reduction_;
  Streams streams_;
  const std::vector<int> leaders_;
  const std::size_t chunk_bytes_;
  std::vector<std::byte> partial_;  // the node's, and those below
  std::vector<Below> below_;
  std::vector<Below> awaited_;
  int missing_ = -1;
};

constexpr Parameter parameters[] = {
    {"chunk_bytes", usual_chunk_bytes, Streams::least_chunk_bytes, most_chunk_bytes,
     "bytes that travel at a time, or fewer with many ranks", "part_bytes"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::reduce,
    .name = "hierarchical_reduce",
    .summary = "a reduction in each node, then over a binomial tree of the nodes by one rank of each, in chunks",
    .source = "Mohammadalizadehbakhtevari 2021, chapter 6: the same composition; 7.2.4",
    .one_node = false,
    .predefined_only = true,
    .serves_declines = false,
    .max_element_bytes = 1024,
    .parameters = parameters,
    .network_ns = [](const NetworkCall& call) { return call.log2_nodes() * call.message_ns; },
    // The phase on the nodes, then up a binomial tree in chunks: each of log2 N steps combines a chunk.
    .call_ns =
        [](const NetworkCall& call) {
          const double chunk_bytes =
              static_cast<double>(Streams::fair_chunk(static_cast<int>(call.ranks), usual_chunk_bytes));
          return costs::node_reduction_ns(call) +
                 costs::binomial_ns(call, call.log2_nodes(), chunk_bytes, call.log2_nodes() * call.reduce_ns());
        },
    .segment = [](const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      return Streams::Shape{
          .ranks = layout.ranks, .chunk_bytes = chunk_bytes_of(layout.ranks, capacity, values), .writers = layout.ranks}
          .segment();
    },
    .region_bytes =
        [](int ranks, std::size_t capacity, std::span<const std::int64_t> values) {
          return NodePhase::region_bytes(reduction_for(Streams::region_chunk(capacity, values[0])), ranks);
        },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<HierarchicalReduce>(team, chunk_bytes_of(team.size, capacity, values),
                                                  Streams::region_chunk(capacity, values[0]));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
