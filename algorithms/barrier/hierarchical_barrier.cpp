// Hierarchical MPI_Barrier: a barrier of each node, n-way dissemination (barrier/dissemination.cpp) among the lowest
// ranks of the nodes, and a second barrier of each node, which lets its ranks go.
//
// Cost, N nodes: ceil(log_{n+1} N) latencies of the network, two barriers of a node.

#include <algorithm>
#include <vector>

#include "algorithms/costs.hpp"
#include "algorithms/dissemination.hpp"
#include "algorithms/hierarchy.hpp"

namespace papaya {

namespace {

constexpr NodePhase::Choice barrier_of_node = {Collective::barrier, 0};

class HierarchicalBarrier final : public Prepared {
 public:
  HierarchicalBarrier(const Team& team, int radix)
      : team_(team),
        position_(team),
        node_(team, barrier_of_node, team.region, this),
        leaders_(*team.wire, lowest_ranks(position_.nodes), position_.node, radix, team.first_round - 1) {}

  bool run(const Operands& operands, wait::Site& site) override {
    Operands one = operands;
    node_.run(one, site);
    if (node_.is_alone() && one.deposited != nullptr) one.deposited(one.context);
    if (position_.rank == 0) disseminate(site);
    one.deposited = nullptr;
    node_.run(one, site);
    return true;
  }

  bool is_missing(int rank) const override {
    if (position_.nodes.of_rank[static_cast<std::size_t>(rank)] == position_.node)
      return node_.is_missing(position_.rank_in_node(rank));
    return rank == steps_.awaited_rank() || rank == leaders_.awaited_rank();
  }

 private:
  void disseminate(wait::Site& site) {
    if (!leaders_.is_settled()) leaders_.settle(*team_.policy, site, this);
    steps_ = leaders_.call({});
    while (!steps_.advance())
      team_.wire->wait(
          *team_.policy, site, [this] { return steps_.can_go_on(); }, static_cast<Prepared*>(this));
  }

  const Team team_;
  const NodePosition position_;
  NodePhase node_;
  DisseminatedBarrier leaders_;
  Steps steps_;
};

constexpr Parameter parameters[] = {
    {"radix", RadixChoice::measured, 0, RadixChoice::most,
     "nodes that each node notifies in a round; 0: the fastest, measured in the first call", "ways"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::barrier,
    .name = "hierarchical_barrier",
    .summary = "a barrier in each node, n-way dissemination among the nodes, a barrier in each node",
    .source = "Mohammadalizadehbakhtevari 2021, chapter 6: the same composition; End et al. 2015",
    .one_node = false,
    .serves_declines = false,
    .parameters = parameters,
    .network_ns = [](const NetworkCall& call) { return call.log2_nodes() * call.message_ns; },
    // Two barriers of each node, and n-way dissemination among the nodes.
    .call_ns =
        [](const NetworkCall& call) {
          return (call.node_ranks <= 1 ? 0 : 2 * nominal_node_latency_ns) + costs::dissemination(call, call.nodes).ns;
        },
    .radix = [](const NetworkCall& call) noexcept { return costs::dissemination(call, call.nodes).n; },
    .segment = [](const Layout& layout, std::size_t, std::span<const std::int64_t> values) -> SegmentShape {
      return DisseminatedBarrier::segment(layout.leaders(), static_cast<int>(values[0]));
    },
    .region_bytes = [](int ranks, std::size_t,
                       std::span<const std::int64_t>) { return NodePhase::region_bytes(barrier_of_node, ranks); },
    .prepare = [](const Team& team, std::size_t, std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<HierarchicalBarrier>(team, static_cast<int>(values[0]));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
