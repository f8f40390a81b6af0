// MPI_Barrier by n-way dissemination (Hoefler et al. 2006, End et al. 2015): in round l every rank notifies n
// others, and goes on once n others have notified it; after ceil(log_{n+1} p) rounds each has heard of all.
//
// A notification is the number of the call. A rank that is ahead by a call sets a later number, which says as
// much.
//
// Cost: ceil(log_{n+1} p) latencies, n notifications each.

#include "algorithms/dissemination.hpp"

#include <cmath>
#include <numeric>

#include "algorithms/costs.hpp"

namespace papaya {

namespace {

class Dissemination final : public OverWire {
 public:
  Dissemination(const Team& team, int radix)
      : OverWire(team), participants_(*team.wire, all_ranks(team), team.rank, radix, team.first_round - 1) {}

  bool run(const Operands& operands, wait::Site& site) override {
    if (!participants_.is_settled()) participants_.settle(*team_.policy, site, this);
    return OverWire::run(operands, site);
  }
  bool is_missing(int rank) const override {
    return rank == participants_.awaited_rank() || OverWire::is_missing(rank);
  }

 private:
  static std::vector<int> all_ranks(const Team& team) {
    std::vector<int> ranks(static_cast<std::size_t>(team.size));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }
  Steps steps(Operands operands) override { return participants_.call(operands); }

  DisseminatedBarrier participants_;
};

constexpr Parameter parameters[] = {
    {"radix", RadixChoice::measured, 0, RadixChoice::most,
     "ranks that each rank notifies in a round; 0: the fastest, measured in the first call", "ways"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::barrier,
    .name = "dissemination",
    .summary = "every rank notifies n others in each of ceil(log_{n+1} p) rounds",
    .source = "Hoefler et al. 2006; End et al. 2015",
    .one_node = false,
    .split_phase = true,
    .serves_declines = false,
    .parameters = parameters,
    // Any of its steps may lie between two nodes.
    .network_ns = [](const NetworkCall& call) { return std::ceil(std::log2(call.ranks)) * call.message_ns; },
    .call_ns = [](const NetworkCall& call) { return costs::dissemination(call, call.ranks).ns; },
    .radix = [](const NetworkCall& call) noexcept { return costs::dissemination(call, call.ranks).n; },
    .segment = [](const Layout& layout, std::size_t, std::span<const std::int64_t> values) -> SegmentShape {
      return DisseminatedBarrier::segment(layout.ranks, static_cast<int>(values[0]));
    },
    .prepare = [](const Team& team, std::size_t, std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<Dissemination>(team, static_cast<int>(values[0]));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
