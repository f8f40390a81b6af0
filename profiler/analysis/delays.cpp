#include "profiler/analysis/delays.hpp"

#include <algorithm>

namespace papaya::report {

void Delays::write(std::vector<RankFigures>& ranks) const {
  for (const auto& [key, delays] : of_) {
    const auto& [file, collective] = key;
    RankFigures& rank = ranks[file];
    const Distribution::Half longest = delays.largest_half();
    rank.delays_in[collective] = delays.count();
    rank.median_delay_ns_in[collective] = delays.median();
    rank.largest_delay_ns_in[collective] = delays.largest();
    rank.long_delays_in[collective] = longest.count;
    rank.long_delay_ns_in[collective] = longest.least;
    rank.largest_delay_ns = std::max(rank.largest_delay_ns, delays.largest());
  }
}

}  // namespace papaya::report
