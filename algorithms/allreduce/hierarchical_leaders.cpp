// Hierarchical MPI_Allreduce with several leaders a node (DPML: Bayatpour et al., SC'17): each leader reduces a slice
// of the message for its node and carries it between the nodes, so that as many cores copy, reduce and send.
//
// The message goes in chunks (patterns/leaders.hpp). Every rank deposits a chunk in shared memory. Once all of the node
// have, leader j combines slice j of all deposits and allreduces it with the leaders j of the other nodes
// (halving.hpp); the result is in the node's memory, in the lowest rank's slot, and all ranks copy the slices out as
// they come. Up to `chunks_in_flight` chunks are between the nodes while the node deposits and combines the next.
//
// Each rank waits for one thing at a time: deposits of its node, its own slice between the nodes, slices of the other
// leaders. All take these in the same order, chunk by chunk, so none waits for one that waits for it. A bank is free
// again when all ranks of the node have copied the results out, and leaders may change what they have sent from.
//
// Order: ranks of a node over the fixed tree, then the nodes, as halving.hpp has it: the same bits on all ranks and in
// every run, for any number of leaders. The operation must be commutative, as the predefined ones are, since a node's
// ranks need not follow each other.
//
// Cost, N nodes of r ranks and k leaders: on each rank a copy of S bytes in and out, on each leader r combines of S/k
// bytes; 2(N-1)/N S bytes sent and received by each node, by k ranks; 2 log2 N latencies of the network.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <vector>

#include "algorithms/chunk_pipeline.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/halving.hpp"
#include "algorithms/hierarchy.hpp"
#include "algorithms/patterns/leaders.hpp"
#include "algorithms/rounds.hpp"

namespace papaya {

namespace {

enum ParameterIndex : std::size_t { chunk_bytes, recursive_doubling_bytes, chunks_in_flight, leaders };

std::size_t chunk_bytes_of(std::size_t capacity, std::span<const std::int64_t> values) {
  return in_lines(std::max(std::min(capacity, static_cast<std::size_t>(values[chunk_bytes])), std::size_t{4096}));
}
Halving::Shape halving_for(int nodes, std::size_t capacity, std::span<const std::int64_t> values) {
  return {nodes, chunk_bytes_of(capacity, values), static_cast<int>(values[chunks_in_flight])};
}
// A flag for each leader, a line each, beside the slots.
Rounds::Shape rounds_for(int ranks, std::size_t capacity, std::span<const std::int64_t> values) {
  return {.ranks = ranks,
          .banks = Rounds::banks_for(static_cast<std::size_t>(2 * values[chunks_in_flight] - 1), 2, 8),
          .slots = ranks,
          .slot_bytes = chunk_bytes_of(capacity, values),
          .extra_bytes = static_cast<std::size_t>(ranks) * Rounds::line_bytes};
}

Team node_of(const Team& team, const NodePosition& position) {
  Team node = team;
  node.rank = position.rank;
  node.size = static_cast<int>(position.ranks().size());
  node.locations = {};
  node.wire = nullptr;
  node.deposits = nullptr;
  node.nodes = nullptr;
  node.messages = nullptr;
  node.node_messages = nullptr;
  return node;
}

// The ranks that write to each other between the nodes with this one, if it may lead: those of its number in their
// nodes.
std::vector<int> peers_of(const NodePosition& position, int most_leaders) {
  std::vector<int> peers;
  for (const std::vector<int>& ranks : position.nodes.ranks)
    peers.push_back(ranks[static_cast<std::size_t>(std::min(position.rank, most_leaders - 1))]);
  return peers;
}

class HierarchicalLeaders final : public Prepared {
 public:
  HierarchicalLeaders(const Team& team, std::size_t capacity, std::span<const std::int64_t> values)
      : team_(team),
        position_(team),
        most_leaders_(most_leaders(position_.nodes, values[leaders])),
        is_chosen_(values[leaders] == 0),
        node_(node_of(team, position_)),
        halving_(*team.wire, halving_for(position_.nodes.count(), capacity, values), peers_of(position_, most_leaders_),
                 position_.node, static_cast<std::size_t>(values[recursive_doubling_bytes])),
        slices_(halving_, halving_.shape().depth, team.first_round - 1),
        chunk_bytes_(chunk_bytes_of(capacity, values)),
        next_(team.first_round) {
    if (node_.size > 1) rounds_.emplace(node_, rounds_for(node_.size, capacity, values));
  }

  bool run(const Operands& operands, wait::Site& site) override {
    const std::size_t most = std::max<std::size_t>(
        patterns::leaders_chunk_bytes(operands.bytes, chunk_bytes_) / operands.reduction->element_bytes, 1);
    const std::size_t chunks = (operands.count + most - 1) / most;
    const auto behind = static_cast<std::size_t>(halving_.shape().depth) - 1;
    const std::uint64_t first = next_;
    next_ += chunks;
    for (std::size_t i = 0; i < chunks + behind; ++i) {
      if (i < chunks) reduce(chunk_at(operands, first, i, most), site);
      if (i >= behind && i - behind < chunks) take(chunk_at(operands, first, i - behind, most), site);
    }
    team_.wire->release_sources();
    return true;
  }

  bool is_missing(int rank) const override {
    if (position_.nodes.of_rank[static_cast<std::size_t>(rank)] != position_.node)
      return rank == slices_.awaited_rank();
    return rounds_ && !rounds_->has_entered(position_.rank_in_node(rank));
  }

 private:
  struct Chunk {
    Operands operands;
    std::uint64_t round;
    int leaders;

    bool leads(int rank) const noexcept { return rank < leaders; }
    std::size_t begin_of(int slice) const noexcept {
      const auto k = static_cast<std::size_t>(leaders);
      const auto s = static_cast<std::size_t>(slice);
      return s * (operands.count / k) + std::min(s, operands.count % k);
    }
  };
  Chunk chunk_at(const Operands& operands, std::uint64_t first_round, std::size_t number, std::size_t most) const {
    const std::size_t first = number * most;
    const Operands chunk = chunk_of(operands, first, std::min(most, operands.count - first));
    const int leaders = is_chosen_ ? patterns::leaders_of(chunk.bytes, most_leaders_) : most_leaders_;
    return {chunk, first_round + number, static_cast<int>(std::min<std::size_t>(leaders, chunk.count))};
  }

  // This rank's slices go on, also while it copies or combines.
  void go_on() noexcept {
    if (slices_.is_idle()) return;
    team_.wire->progress();
    slices_.advance();
  }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    constexpr std::size_t piece = 32 << 10;
    for (std::size_t at = 0; at < bytes; at += piece) {
      std::memcpy(to + at, from + at, std::min(piece, bytes - at));
      go_on();
    }
  }

  // Waits on the node's bell, on which each round rings twice: when all have deposited, and when all slices are there.
  // Own slices go on meanwhile.
  template <class Ready>
  void wait_on_node(std::uint64_t event, wait::Site& site, const Ready& ready) {
    if (!ready())
      team_.policy->until(
          site, rounds_->bell(), static_cast<std::uint32_t>(event),
          [&] {
            if (!slices_.is_idle()) slices_.advance();
            return ready();
          },
          [] { return false; }, static_cast<Prepared*>(this));
  }
  // After this rank's part of it: the last one tells who sleeps.
  template <class Ready>
  void ring(std::uint64_t event, const Ready& is_complete) {
    if (rounds_->is_anybody_asleep() && is_complete()) rounds_->ring(event);
  }

  bool have_all_deposited(std::uint64_t round) const noexcept {
    for (int rank = 0; rank < node_.size; ++rank)
      if (!rounds_->is_complete(round, rank)) return false;
    return true;
  }
  // The flag of a leader: up to which round its slices are there.
  std::atomic<std::uint64_t>& slice_flag(std::uint64_t round, int leader) const noexcept {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(rounds_->extra(round) +
                                                          static_cast<std::size_t>(leader) * Rounds::line_bytes);
  }
  bool are_all_slices_there(const Chunk& chunk) const noexcept {
    for (int leader = 0; leader < chunk.leaders; ++leader)
      // Acquire: partner of the release in take().
      if (slice_flag(chunk.round, leader).load(std::memory_order_acquire) < chunk.round) return false;
    return true;
  }

  void reduce(const Chunk& chunk, wait::Site& site) {
    const Operands& operands = chunk.operands;
    const Reduction& reduction = *operands.reduction;
    const auto tell_deposited = [&] {
      if (operands.deposited != nullptr) operands.deposited(operands.context);
    };
    if (!rounds_) {
      slices_.begin(static_cast<const std::byte*>(operands.send), static_cast<std::byte*>(operands.receive),
                    operands.count, reduction);
      return tell_deposited();
    }
    const std::uint64_t round = chunk.round;
    rounds_->enter(round);
    rounds_->wait_until_free(round, site, static_cast<Prepared*>(this));
    copy(rounds_->own_data(round, operands.bytes), static_cast<const std::byte*>(operands.send), operands.bytes);
    rounds_->publish(round, node_.rank, Rounds::complete);
    tell_deposited();
    const auto all = [&] { return have_all_deposited(round); };
    ring(2 * round, all);
    if (!chunk.leads(node_.rank)) return;
    wait_on_node(2 * round, site, all);
    // In place: the slice is this leader's alone in all slots.
    const std::size_t begin = chunk.begin_of(node_.rank);
    const std::size_t count = chunk.begin_of(node_.rank + 1) - begin;
    const auto at = [&](int rank) {
      return rounds_->data(round, rank, operands.bytes) + begin * reduction.element_bytes;
    };
    for (int half = 1; half < node_.size; half *= 2)
      for (int first = 0; first + half < node_.size; first += 2 * half) {
        reduction.combine(reduction, at(first), at(first + half), at(first), count);
        go_on();
      }
    slices_.begin(at(0), at(0), count, reduction);
  }

  void take(const Chunk& chunk, wait::Site& site) {
    if (!rounds_ || chunk.leads(node_.rank)) {
      if (!slices_.advance())
        team_.wire->wait(
            *team_.policy, site, [this] { return slices_.advance(); }, static_cast<Prepared*>(this));
      slices_.end_oldest();
    }
    if (!rounds_) return;
    const std::uint64_t round = chunk.round;
    const auto all = [&] { return are_all_slices_there(chunk); };
    if (chunk.leads(node_.rank)) {
      // Release: partner of the acquire in are_all_slices_there(); the slice comes first.
      slice_flag(round, node_.rank).store(round, std::memory_order_release);
      ring(2 * round + 1, all);
    }
    wait_on_node(2 * round + 1, site, all);
    copy(static_cast<std::byte*>(chunk.operands.receive), rounds_->data(round, 0, chunk.operands.bytes),
         chunk.operands.bytes);
    if (chunk.leads(node_.rank)) team_.wire->release_sources();
    rounds_->return_credit(round + 1);
  }

  const Team team_;
  const NodePosition position_;
  const int most_leaders_;  // equal on all nodes
  const bool is_chosen_;    // how many lead, by the bytes of a chunk
  const Team node_;
  std::optional<Rounds> rounds_;  // none: the rank is alone on its node
  Halving halving_;
  ChunkPipeline<Halving> slices_;  // this rank's, if it leads
  const std::size_t chunk_bytes_;
  std::uint64_t next_;  // the next chunk's round
};

constexpr Parameter parameters[] = {
    {"chunk_bytes", 256 << 10, 4096, 4 << 20, "bytes of the message that are reduced at a time, at most"},
    {"recursive_doubling_bytes", 1536, 0, 65536,
     "up to this size nodes exchange whole slices by recursive doubling, in half as many steps"},
    {"chunks_in_flight", 2, 1, 4, "chunks that are between the nodes at a time"},
    {"leaders", 0, 0, 1024, "ranks of each node that write to other nodes; 0: as many as get 1 KiB of a chunk"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::allreduce,
    .name = "hierarchical_leaders",
    .summary =
        "ranks of a node reduce a slice each, Rabenseifner's algorithm among the nodes for each slice, results from "
        "shared memory",
    .source = "Bayatpour et al. 2017 (DPML)",
    .one_node = false,
    .predefined_only = true,
    .serves_declines = false,
    .max_element_bytes = Halving::most_element_bytes,
    .parameters = parameters,
    // On each node a copy of S bytes in and out, and (q-1) S/k gamma by each of k leaders; between nodes as
    // rabenseifner's, whose alpha k slices share, and whose bytes k ranks send.
    .call_ns =
        [](const NetworkCall& call) {
          constexpr std::size_t most_chunk_bytes = 256 << 10;
          constexpr double doubled_bytes = 1536;
          const auto chunk = static_cast<double>(
              patterns::leaders_chunk_bytes(static_cast<std::size_t>(call.bytes), most_chunk_bytes));
          const double chunks = chunk <= 0 ? 1 : std::ceil(call.bytes / chunk);
          const double k = patterns::leaders_of(static_cast<std::size_t>(chunk), static_cast<int>(call.node_ranks));
          const auto [steps, is_folded] = costs::doubling(call.nodes);
          const double node = call.node_ranks <= 1 ? 0
                                                   : 3 * nominal_node_latency_ns + 2 * call.copy_ns() +
                                                         (call.node_ranks - 1) * call.reduce_ns() / k;
          if (chunk / k <= doubled_bytes)
            return costs::overlapped_ns((steps + 2 * is_folded) * (call.latency_ns + call.transfer_ns()),
                                        node + steps * call.reduce_ns() / k, chunks);
          const double fold = is_folded * 2 * (call.latency_ns + call.transfer_ns());
          const double network = 2 * steps * call.latency_ns + 2 * costs::share(call.nodes) * call.transfer_ns() + fold;
          return costs::overlapped_ns(network, node + costs::share(call.nodes) * call.reduce_ns() / k, chunks);
        },
    .segment = [](const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      return halving_for(layout.leaders(), capacity, values).segment();
    },
    .region_bytes =
        [](int ranks, std::size_t capacity, std::span<const std::int64_t> values) {
          return ranks == 1 ? 0 : rounds_for(ranks, capacity, values).total();
        },
    .prepare = [](const Team& team, std::size_t capacity, std::span<const std::int64_t> values)
        -> std::unique_ptr<Prepared> { return std::make_unique<HierarchicalLeaders>(team, capacity, values); },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
