// MPI_Barrier in levels: a barrier of each node, n-way dissemination (barrier/dissemination.cpp) among the lowest ranks of the
// nodes, and a second barrier of each node, which lets its ranks go.
//
// Cost, N nodes: ceil(log_{n+1} N) latencies of the network, two barriers of a node.

#include <algorithm>
#include <vector>

#include "algorithms/hierarchy.hpp"
#include "algorithms/patterns/dissemination.hpp"

namespace papaya {

namespace {

constexpr NodePhase::Choice barrier_of_node = {Collective::barrier, "arrival_barrier", 0};

class HierarchicalBarrier final : public Prepared {
 public:
  HierarchicalBarrier(const Team& team, int ways)
      : team_(team),
        place_(team),
        node_(team, barrier_of_node, team.region, this),
        leaders_(lowest_ranks(place_.nodes)),
        ways_(ways),
        rounds_(patterns::dissemination_rounds(place_.nodes.count(), ways)),
        call_(team.first_round - 1) {}

  bool run(const Operands& operands, wait::Site& site) override {
    ++call_;
    Operands one = operands;
    node_.run(one, site);
    if (node_.is_alone() && one.deposited != nullptr) one.deposited(one.context);
    if (place_.rank == 0) disseminate(site);
    one.deposited = nullptr;
    node_.run(one, site);
    return true;
  }

  bool is_missing(int rank) const override {
    return rank == missing_ || (place_.nodes.of_rank[static_cast<std::size_t>(rank)] == place_.node &&
                                node_.is_missing(place_.rank_in_node(rank)));
  }

 private:
  void disseminate(wait::Site& site) {
    const int all = place_.nodes.count();
    const auto leader = [&](int node) { return leaders_[static_cast<std::size_t>(node)]; };
    const auto id = [&](int round, int i) { return (round - 1) * ways_ + i - 1; };
    for (int l = 1; l <= rounds_; ++l) {
      for (int i = 1; i <= ways_; ++i)
        if (const int node = patterns::dissemination_target(place_.node, all, ways_, l, i); node != place_.node)
          team_.wire->notify(leader(node), id(l, i), call_);
      for (int i = 1; i <= ways_; ++i) {
        const int node = patterns::dissemination_source(place_.node, all, ways_, l, i);
        const auto has_come = [&] { return team_.wire->look(id(l, i)) >= call_; };
        if (node == place_.node || has_come()) continue;
        missing_ = leader(node);
        team_.wire->wait(*team_.policy, site, has_come, static_cast<Prepared*>(this));
        missing_ = -1;
      }
    }
  }

  const Team team_;
  const Place place_;
  NodePhase node_;
  const std::vector<int> leaders_;
  const int ways_;
  const int rounds_;
  std::uint64_t call_;
  int missing_ = -1;
};

constexpr Parameter parameters[] = {
    {"ways", 2, 1, 7, "nodes that each node notifies in a round"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::barrier,
    .name = "hierarchical_barrier",
    .summary = "a barrier in each node, n-way dissemination among the nodes, a barrier in each node",
    .source = "Mohammadalizadehbakhtevari 2021, chapter 6: the same composition; End et al. 2015",
    .one_node = false,
    .takes_vetoes = false,
    .parameters = parameters,
    .segment = [](int ranks, std::size_t, std::span<const std::int64_t> values) -> SegmentShape {
      const int ways = static_cast<int>(values[0]);
      return {64, std::max(patterns::dissemination_rounds(ranks, ways) * ways, 1)};
    },
    .region_bytes = [](int ranks, std::size_t,
                       std::span<const std::int64_t>) { return NodePhase::region_bytes(barrier_of_node, ranks); },
    .prepare = [](const Team& team, std::size_t, std::span<const std::int64_t> values)
        -> std::unique_ptr<Prepared> { return std::make_unique<HierarchicalBarrier>(team, static_cast<int>(values[0])); },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
