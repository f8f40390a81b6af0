#include "profiler/analysis/imbalance.hpp"

#include <numeric>

namespace papaya::report {

void ImbalanceSum::add(const WorstAverage& imbalance, double alpha_ns) {
  ++sum.calls;
  sum.worst_ns += imbalance.worst_ns;
  sum.average_ns += imbalance.average_ns;
  sum.worst_factor += imbalance.worst_ns / alpha_ns;
  sum.average_factor += imbalance.average_ns / alpha_ns;
}

Imbalance ImbalanceSum::average() const {
  if (sum.calls == 0) return {};
  const auto calls = static_cast<double>(sum.calls);
  return {sum.calls, sum.worst_ns / calls, sum.average_ns / calls, sum.worst_factor / calls,
          sum.average_factor / calls};
}

Spread spread_of(std::vector<double>& samples_ns) {
  Spread spread;
  spread.samples = samples_ns.size();
  if (samples_ns.empty()) return spread;
  const auto count = static_cast<double>(samples_ns.size());
  spread.mean_ns = std::accumulate(samples_ns.begin(), samples_ns.end(), 0.0) / count;
  // Nearest rank: the smallest sample that at least this share of the samples do not exceed.
  const auto percentile = [&](std::size_t percent) {
    const std::size_t rank = (samples_ns.size() * percent + 99) / 100;
    const auto at = samples_ns.begin() + static_cast<std::ptrdiff_t>(rank - 1);
    std::nth_element(samples_ns.begin(), at, samples_ns.end());
    return *at;
  };
  spread.p99_ns = percentile(99);
  spread.p50_ns = percentile(50);
  spread.max_ns = *std::max_element(samples_ns.begin(), samples_ns.end());
  return spread;
}

}  // namespace papaya::report
