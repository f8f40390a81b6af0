#include "profiler/analysis/imbalance.hpp"

#include <cmath>

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

void Samples::add(double ns) {
  least_ns_ = count_ == 0 ? ns : std::min(least_ns_, ns);
  most_ns_ = count_ == 0 ? ns : std::max(most_ns_, ns);
  ++count_;
  sum_ns_ += ns;
  if (!buckets_.empty()) return add_to_bucket(ns);
  exact_.push_back(ns);
  if (exact_.size() <= most_exact) return;
  buckets_.resize(buckets);
  for (const double value : exact_) add_to_bucket(value);
  exact_ = {};
}

void Samples::add_to_bucket(double ns) {
  const double bucket = ns > 1 ? 1 + std::floor(std::log2(ns) * buckets_per_doubling) : 0;
  ++buckets_[std::min(static_cast<std::size_t>(bucket), buckets - 1)];
}

// Nearest rank: the smallest sample that at least this share of the samples do not exceed.
double Samples::percentile(std::size_t percent) {
  const std::uint64_t rank = (count_ * percent + 99) / 100;
  if (buckets_.empty()) {
    const auto at = exact_.begin() + static_cast<std::ptrdiff_t>(rank - 1);
    std::nth_element(exact_.begin(), at, exact_.end());
    return *at;
  }
  std::uint64_t seen = 0;
  std::size_t bucket = 0;
  while (seen + buckets_[bucket] < rank) seen += buckets_[bucket++];
  const double middle = bucket == 0 ? 0.5 : std::exp2((static_cast<double>(bucket) - 0.5) / buckets_per_doubling);
  return std::clamp(middle, least_ns_, most_ns_);
}

Spread Samples::spread() {
  if (count_ == 0) return {};
  return {.samples = count_,
          .mean_ns = sum_ns_ / static_cast<double>(count_),
          .p50_ns = percentile(50),
          .p99_ns = percentile(99),
          .max_ns = most_ns_};
}

}  // namespace papaya::report
