#include "profiler/analysis/delays.hpp"

#include <algorithm>

#include "profiler/analysis/archive.hpp"

namespace papaya::report {
namespace {

// Of a rank's delays some tell all if they make up so much of their sum and are no more than this part of them.
constexpr double almost_all = 0.95;
constexpr double most_notable = 0.9;
// ... and the others are shorter than this part of them, on average.
constexpr double next_to_nothing = 0.05;

}  // namespace

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
    const Distribution::Notable notable = delays.notable();
    const auto count = static_cast<double>(notable.count);
    const auto others = static_cast<double>(delays.count()) - count;
    const double others_ns = delays.sum() - notable.sum;
    if (notable.sum >= almost_all * delays.sum() && count < most_notable * static_cast<double>(delays.count()) &&
        others_ns * count < next_to_nothing * notable.sum * others) {
      rank.notable_delays_in[collective] = notable.count;
      rank.notable_delay_ns_in[collective] = notable.sum / count;
    }
    rank.largest_delay_ns = std::max(rank.largest_delay_ns, delays.largest());
  }
}

void Delays::pack(Archive& archive) {
  archive(of_);
}

}  // namespace papaya::report
