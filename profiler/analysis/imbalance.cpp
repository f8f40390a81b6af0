#include "profiler/analysis/imbalance.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "profiler/analysis/archive.hpp"

namespace papaya::report {

void ImbalanceSum::add(const WorstAverage& imbalance, double alpha_ns) {
  ++sum.calls;
  sum.worst_ns += imbalance.worst_ns;
  sum.average_ns += imbalance.average_ns;
  sum.worst_factor += imbalance.worst_ns / alpha_ns;
  sum.average_factor += imbalance.average_ns / alpha_ns;
}

void ImbalanceSum::merge(const ImbalanceSum& other) {
  sum.calls += other.sum.calls;
  sum.worst_ns += other.sum.worst_ns;
  sum.average_ns += other.sum.average_ns;
  sum.worst_factor += other.sum.worst_factor;
  sum.average_factor += other.sum.average_factor;
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
  if (exact_.size() > most_exact) use_buckets();
}

void Samples::use_buckets() {
  buckets_.resize(buckets);
  for (const double value : exact_) add_to_bucket(value);
  exact_ = {};
}

void Samples::merge(const Samples& other) {
  if (other.count_ == 0) return;
  least_ns_ = count_ == 0 ? other.least_ns_ : std::min(least_ns_, other.least_ns_);
  most_ns_ = count_ == 0 ? other.most_ns_ : std::max(most_ns_, other.most_ns_);
  count_ += other.count_;
  sum_ns_ += other.sum_ns_;
  if (buckets_.empty() && (!other.buckets_.empty() || exact_.size() + other.exact_.size() > most_exact)) use_buckets();
  if (buckets_.empty()) {
    exact_.insert(exact_.end(), other.exact_.begin(), other.exact_.end());
    return;
  }
  for (const double value : other.exact_) add_to_bucket(value);
  for (std::size_t b = 0; b < other.buckets_.size(); ++b) buckets_[b] += other.buckets_[b];
}

void Samples::pack(Archive& archive) {
  archive(exact_, buckets_, count_, sum_ns_, least_ns_, most_ns_);
}

void CollectiveSums::pack(Archive& archive) {
  archive(cluster_by_size, node_by_size, cluster, node, inside_ns, excess_ns, waiting_ns);
}

void CollectiveSums::merge(const CollectiveSums& other) {
  for (std::size_t s = 0; s < size_class_count; ++s) {
    cluster_by_size[s].merge(other.cluster_by_size[s]);
    node_by_size[s].merge(other.node_by_size[s]);
  }
  cluster.merge(other.cluster);
  node.merge(other.node);
  inside_ns.merge(other.inside_ns);
  excess_ns.merge(other.excess_ns);
  waiting_ns += other.waiting_ns;
}

// As many buckets to each doubling, all of one width.
void Samples::add_to_bucket(double ns) {
  constexpr std::uint64_t one = std::bit_cast<std::uint64_t>(1.0) >> (52 - bits);
  const std::uint64_t bucket = ns >= 1 ? 1 + (std::bit_cast<std::uint64_t>(ns) >> (52 - bits)) - one : 0;
  ++buckets_[std::min<std::uint64_t>(bucket, buckets - 1)];
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
  const std::size_t step = (bucket - 1) & ((std::size_t{1} << bits) - 1);
  const double middle = bucket == 0 ? 0.5
                                    : std::ldexp(1 + (static_cast<double>(step) + 0.5) / (1 << bits),
                                                 static_cast<int>((bucket - 1) >> bits));
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

WorstAverage imbalance_of(std::span<const double> waits_ns) {
  const auto count = static_cast<double>(waits_ns.size());
  const double mean_ns = std::accumulate(waits_ns.begin(), waits_ns.end(), 0.0) / count;
  WorstAverage imbalance;
  for (const double ns : waits_ns) {
    imbalance.worst_ns = std::max(imbalance.worst_ns, ns);
    imbalance.average_ns += std::abs(ns - mean_ns);
  }
  imbalance.average_ns /= count;
  return imbalance;
}

}  // namespace papaya::report
