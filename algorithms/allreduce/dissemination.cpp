// MPI_Allreduce by n-way dissemination (End et al. 2015; dissemination.hpp): for small messages across nodes, the
// fewest rounds there are, and nobody waits for a result to come back. n is measured in the first call, unless the user
// says it.
//
// Where nodes have several ranks, only one of each takes part (`levels` 2): its node's ranks are reduced to it in
// shared memory first, in rank order, and get the result from it. So a node sends n messages a round and not n for each
// rank. Where a node's ranks do not follow each other all goes in one level, for operations that do not commute; so do
// nonblocking calls, which have the wire alone.
//
// Cost, N parties: ceil(log_{n+1} N) latencies, n messages each; in two levels a reduction and a broadcast in each
// node.

#include "algorithms/dissemination.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "algorithms/hierarchy.hpp"

namespace papaya {

namespace {

enum ParameterPlace : std::size_t { ways, levels };

constexpr std::size_t largest_message = DisseminatedReduction::largest_message;

std::vector<int> all_ranks(const Team& team) {
  std::vector<int> ranks(static_cast<std::size_t>(team.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

class InOneLevel final : public OverWire {
 public:
  InOneLevel(const Team& team, std::size_t capacity, int ways)
      : OverWire(team),
        parties_(*team.wire, all_ranks(team), team.rank, capacity, ways, team.first_round - 1),
        ways_(parties_.ways().chosen()) {}

  bool run(const Operands& operands, wait::Site& site) override {
    if (!parties_.ways().is_settled())
      parties_.settle(operands, *team_.policy, site, this, true, [&](const Operands& rehearsed, int n) {
        ways_ = n;
        OverWire::run(rehearsed, site);
      });
    ways_ = parties_.ways().chosen();
    return OverWire::run(operands, site);
  }

 private:
  Steps steps(Operands operands) override { return parties_.call(operands, ways_); }

  DisseminatedReduction parties_;
  int ways_;  // of the present call
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

class InTwoLevels final : public Prepared {
 public:
  InTwoLevels(const Team& team, std::size_t capacity, int ways)
      : team_(team),
        place_(team),
        reduction_(team, reduction_for(capacity), team.region, this),
        broadcast_(
            team, broadcast_for(capacity),
            team.region + NodePhase::region_bytes(reduction_for(capacity), static_cast<int>(place_.ranks().size())),
            this),
        parties_(*team.wire, lowest_ranks(place_.nodes), place_.node, capacity, ways, team.first_round - 1) {}

  bool run(const Operands& operands, wait::Site& site) override {
    if (!parties_.ways().is_settled())
      parties_.settle(operands, *team_.policy, site, this, place_.rank == 0,
                      [&](const Operands& rehearsed, int n) { run(rehearsed, n, site); });
    run(operands, parties_.ways().chosen(), site);
    return true;
  }

  bool is_missing(int rank) const override {
    if (place_.nodes.of_rank[static_cast<std::size_t>(rank)] != place_.node) return rank == steps_.awaited_rank();
    const int local = place_.rank_in_node(rank);
    return reduction_.is_missing(local) || broadcast_.is_missing(local);
  }

 private:
  void run(const Operands& operands, int ways, wait::Site& site) {
    Operands phase = operands;
    phase.root = 0;
    if (place_.rank != 0) phase.receive = nullptr;
    reduction_.run(phase, site);
    phase = operands;
    phase.root = 0;
    phase.deposited = reduction_.is_alone() ? operands.deposited : nullptr;
    if (place_.rank == 0) {
      if (!reduction_.is_alone()) phase.send = operands.receive;
      steps_ = parties_.call(phase, ways);
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
  const Place place_;
  NodePhase reduction_;
  NodePhase broadcast_;
  DisseminatedReduction parties_;
  Steps steps_;
};

constexpr Parameter parameters[] = {
    {"ways", Ways::measured, 0, Ways::most,
     "ranks that each rank sends to in a round; 0: the fastest, measured in the first call"},
    {"levels", 2, 1, 2, "2: inside nodes by shared memory, and one rank of each to the others'; 1: every rank"},
};

bool has_two_levels(const Layout& layout, std::span<const std::int64_t> values) {
  return values[levels] == 2 && layout.nodes != nullptr && layout.leaders() > 1 && layout.leaders() < layout.ranks &&
         are_in_rank_order(*layout.nodes);
}

int ways_of(std::span<const std::int64_t> values) {
  return static_cast<int>(values[ways]);
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
    .takes_vetoes = false,
    .max_bytes = largest_message,
    .parameters = parameters,
    .network_ns = [](const NetworkCall& call) { return call.log2_nodes() * call.message_ns; },
    .segment = [](const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      return DisseminatedReduction::segment(has_two_levels(layout, values) ? layout.leaders() : layout.ranks, capacity,
                                            ways_of(values));
    },
    .region_bytes =
        [](int ranks, std::size_t capacity, std::span<const std::int64_t> values) {
          return values[levels] == 1 ? 0
                                     : NodePhase::region_bytes(reduction_for(capacity), ranks) +
                                           NodePhase::region_bytes(broadcast_for(capacity), ranks);
        },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      if (has_two_levels(team.layout(), values)) return std::make_unique<InTwoLevels>(team, capacity, ways_of(values));
      return std::make_unique<InOneLevel>(team, capacity, ways_of(values));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
