// MPI_Allreduce by n-way dissemination (End et al. 2015; dissemination.hpp): for small messages across nodes, the
// fewest rounds there are, and nobody waits for a result to come back. n is measured in the first call, unless the user
// says it.
//
// Where nodes have several ranks, only one of each takes part (`levels` 2): its node's ranks are reduced to it in
// shared memory first, in rank order, and get the result from it. So a node sends n messages a round and not n for each
// rank. Where a node's ranks do not follow each other the algorithm is flat, for operations that do not commute; so it
// is for nonblocking calls, which have the wire alone.
//
// Cost, N participants: ceil(log_{n+1} N) latencies, n messages each; hierarchical: a reduction and a broadcast in each
// node.

#include "algorithms/dissemination.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "algorithms/costs.hpp"
#include "algorithms/hierarchy.hpp"

namespace papaya {

namespace {

enum ParameterIndex : std::size_t { radix, levels };

constexpr std::size_t largest_message = DisseminatedReduction::largest_message;

std::vector<int> all_ranks(const Team& team) {
  std::vector<int> ranks(static_cast<std::size_t>(team.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

class Flat final : public OverWire {
 public:
  Flat(const Team& team, std::size_t capacity, int radix)
      : OverWire(team),
        participants_(*team.wire, all_ranks(team), team.rank, capacity, radix, team.first_round - 1),
        radix_(participants_.radix().chosen()) {}

  bool run(const Operands& operands, wait::Site& site) override {
    if (!participants_.radix().is_settled())
      participants_.settle(operands, *team_.policy, site, this, true, [&](const Operands& rehearsed, int n) {
        radix_ = n;
        OverWire::run(rehearsed, site);
      });
    radix_ = participants_.radix().chosen();
    return OverWire::run(operands, site);
  }

 private:
  Steps steps(Operands operands) override { return participants_.call(operands, radix_); }

  DisseminatedReduction participants_;
  int radix_;  // of the present call
};

bool are_in_rank_order(const Nodes& nodes) {
  return std::all_of(nodes.ranks.begin(), nodes.ranks.end(), [](const std::vector<int>& ranks) {
    return ranks.back() - ranks.front() + 1 == static_cast<int>(ranks.size());
  });
}

NodePhase::Choice reduction_for(std::size_t bytes) {
  return {Collective::reduce, bytes};
}
NodePhase::Choice broadcast_for(std::size_t bytes) {
  return {Collective::bcast, bytes};
}

class Hierarchical final : public Prepared {
 public:
  Hierarchical(const Team& team, std::size_t capacity, int radix)
      : team_(team),
        position_(team),
        reduction_(team, reduction_for(capacity), team.region, this),
        broadcast_(
            team, broadcast_for(capacity),
            team.region + NodePhase::region_bytes(reduction_for(capacity), static_cast<int>(position_.ranks().size())),
            this),
        participants_(*team.wire, lowest_ranks(position_.nodes), position_.node, capacity, radix,
                      team.first_round - 1) {}

  bool run(const Operands& operands, wait::Site& site) override {
    if (!participants_.radix().is_settled())
      participants_.settle(operands, *team_.policy, site, this, position_.rank == 0,
                           [&](const Operands& rehearsed, int n) { run(rehearsed, n, site); });
    run(operands, participants_.radix().chosen(), site);
    return true;
  }

  bool is_missing(int rank) const override {
    if (position_.nodes.of_rank[static_cast<std::size_t>(rank)] != position_.node) return rank == steps_.awaited_rank();
    const int local = position_.rank_in_node(rank);
    return reduction_.is_missing(local) || broadcast_.is_missing(local);
  }

 private:
  void run(const Operands& operands, int radix, wait::Site& site) {
    Operands phase = operands;
    phase.root = 0;
    if (position_.rank != 0) phase.receive = nullptr;
    reduction_.run(phase, site);
    phase = operands;
    phase.root = 0;
    phase.deposited = reduction_.is_alone() ? operands.deposited : nullptr;
    if (position_.rank == 0) {
      if (!reduction_.is_alone()) phase.send = operands.receive;
      steps_ = participants_.call(phase, radix);
      while (!steps_.advance())
        team_.wire->wait(
            *team_.policy, site, [this] { return steps_.can_go_on(); }, static_cast<Prepared*>(this));
      phase.send = operands.receive;
      phase.receive = nullptr;
    } else {
      phase.send = nullptr;
    }
    phase.deposited = nullptr;
    broadcast_.run(phase, site);
  }

  const Team team_;
  const NodePosition position_;
  NodePhase reduction_;
  NodePhase broadcast_;
  DisseminatedReduction participants_;
  Steps steps_;
};

constexpr Parameter parameters[] = {
    {"radix", RadixChoice::measured, 0, RadixChoice::most,
     "ranks that each rank sends to in a round; 0: the fastest, measured in the first call", "ways"},
    {"levels", 2, 1, 2, "2: inside nodes by shared memory, and one rank of each to the others'; 1: every rank"},
};

bool is_hierarchical(const Layout& layout, std::span<const std::int64_t> values) {
  return values[levels] == 2 && layout.nodes != nullptr && layout.leaders() > 1 && layout.leaders() < layout.ranks &&
         are_in_rank_order(*layout.nodes);
}

int radix_of(std::span<const std::int64_t> values) {
  return static_cast<int>(values[radix]);
}

// Round l with n others: alpha, n messages; a message of up to log2 (n+1)^(l-1) + 1 nodes of the fixed tree, which are
// combined. The best n. Where bits do not depend on the order a message is one partial result, and long ones take less.
costs::Radix between_nodes(const NetworkCall& call) noexcept {
  return costs::best_radix([&](int n) {
    double ns = 0;
    for (double reach = 1; reach < call.nodes; reach *= n + 1) {
      const double others = std::min<double>(n, std::ceil(call.nodes / reach) - 1);
      const double parts = std::floor(std::log2(reach)) + 1;
      ns += call.latency_ns + (others - 1) * call.start_ns() + parts * call.transfer_ns() +
            others * parts * call.reduce_ns();
    }
    return ns;
  });
}

constexpr Descriptor descriptor = {
    .collective = Collective::allreduce,
    .name = "dissemination",
    .summary =
        "one rank of a node sends to n others in each of ceil(log_{n+1} nodes) rounds, and has the result after the "
        "last",
    .source = "End et al. 2015",
    .one_node = false,
    .split_phase = true,
    .serves_declines = false,
    .max_bytes = largest_message,
    .parameters = parameters,
    .network_ns = [](const NetworkCall& call) { return call.log2_nodes() * call.message_ns; },
    .call_ns =
        [](const NetworkCall& call) {
          return costs::node_reduction_ns(call) + between_nodes(call).ns + costs::node_broadcast_ns(call);
        },
    .radix = [](const NetworkCall& call) noexcept { return between_nodes(call).n; },
    .segment = [](const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      return DisseminatedReduction::segment(is_hierarchical(layout, values) ? layout.leaders() : layout.ranks, capacity,
                                            radix_of(values));
    },
    .region_bytes =
        [](int ranks, std::size_t capacity, std::span<const std::int64_t> values) {
          return values[levels] == 1 ? 0
                                     : NodePhase::region_bytes(reduction_for(capacity), ranks) +
                                           NodePhase::region_bytes(broadcast_for(capacity), ranks);
        },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      if (is_hierarchical(team.layout(), values))
        return std::make_unique<Hierarchical>(team, capacity, radix_of(values));
      return std::make_unique<Flat>(team, capacity, radix_of(values));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
