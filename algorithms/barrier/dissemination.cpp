// MPI_Barrier by n-way dissemination (Hoefler et al. 2006, End et al. 2015): in round l every rank notifies n
// others, and goes on once n others have notified it; after ceil(log_{n+1} p) rounds each has heard of all.
//
// A notification is the number of the call. A rank that is ahead by a call sets a later number, which says as
// much.
//
// Cost: ceil(log_{n+1} p) latencies, n notifications each.

#include "algorithms/patterns/dissemination.hpp"

#include <algorithm>

#include "algorithms/steps.hpp"

namespace papaya {

namespace {

class Dissemination final : public OverWire {
 public:
  Dissemination(const Team& team, int ways)
      : OverWire(team),
        ways_(ways),
        rounds_(patterns::dissemination_rounds(team.size, ways)),
        call_(team.first_round - 1) {}

 private:
  Steps steps(Operands operands) override {
    ++call_;
    for (int l = 1; l <= rounds_; ++l) {
      for (int i = 1; i <= ways_; ++i)
        if (const int peer = patterns::dissemination_target(team_.rank, team_.size, ways_, l, i);
            peer != team_.rank)
          team_.wire->notify(peer, id(l, i), call_);
      if (l == 1) tell_deposited(operands);
      for (int i = 1; i <= ways_; ++i) {
        const int peer = patterns::dissemination_source(team_.rank, team_.size, ways_, l, i);
        if (peer != team_.rank) co_await heard(id(l, i), call_, peer);
      }
    }
  }

  int id(int round, int i) const noexcept { return (round - 1) * ways_ + i - 1; }

  const int ways_;
  const int rounds_;
  std::uint64_t call_;
};

constexpr Parameter parameters[] = {
    {"ways", 2, 1, 7, "ranks that each rank notifies in a round"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::barrier,
    .name = "dissemination",
    .summary = "every rank notifies n others in each of ceil(log_{n+1} p) rounds",
    .source = "Hoefler et al. 2006; End et al. 2015",
    .one_node = false,
    .split_phase = true,
    .takes_vetoes = false,
    .parameters = parameters,
    .segment = [](int ranks, std::size_t, std::span<const std::int64_t> values) -> SegmentShape {
      const int ways = static_cast<int>(values[0]);
      return {64, std::max(patterns::dissemination_rounds(ranks, ways) * ways, 1)};
    },
    .prepare = [](const Team& team, std::size_t,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<Dissemination>(team, static_cast<int>(values[0]));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
