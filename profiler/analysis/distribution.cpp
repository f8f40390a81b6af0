#include "profiler/analysis/distribution.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "profiler/analysis/archive.hpp"

namespace papaya::report {

void Distribution::add(double value) {
  if (!(value > 0)) return;
  const double doublings = std::log2(value) - first_doubling;
  const auto bucket =
      std::min(static_cast<std::size_t>(std::max(0.0, doublings * buckets_per_doubling)), most_buckets - 1);
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
  ++buckets_[bucket].count;
  buckets_[bucket].sum += value;
  ++count_;
  largest_ = std::max(largest_, value);
}

void Distribution::merge(const Distribution& other) {
  buckets_.resize(std::max(buckets_.size(), other.buckets_.size()));
  for (std::size_t b = 0; b < other.buckets_.size(); ++b) {
    buckets_[b].count += other.buckets_[b].count;
    buckets_[b].sum += other.buckets_[b].sum;
  }
  count_ += other.count_;
  largest_ = std::max(largest_, other.largest_);
}

double Distribution::median() const {
  std::uint64_t left = (count_ + 1) / 2;
  for (const Bucket& bucket : buckets_) {
    if (left > 0 && left <= bucket.count) return bucket.sum / static_cast<double>(bucket.count);
    left -= std::min(left, bucket.count);
  }
  return 0;
}

double Distribution::sum() const {
  return std::accumulate(buckets_.begin(), buckets_.end(), 0.0,
                         [](double sum, const Bucket& bucket) { return sum + bucket.sum; });
}

Distribution::Notable Distribution::notable() const {
  const double least = largest_half().least / 4;
  Notable notable;
  for (const Bucket& bucket : buckets_) {
    if (bucket.count == 0 || bucket.sum < least * static_cast<double>(bucket.count)) continue;
    notable.count += bucket.count;
    notable.sum += bucket.sum;
  }
  return notable;
}

Distribution::Half Distribution::largest_half() const {
  Half half;
  double left = sum() / 2;
  for (auto bucket = buckets_.rbegin(); bucket != buckets_.rend() && left > 0; ++bucket) {
    if (bucket->count == 0) continue;
    const double mean = bucket->sum / static_cast<double>(bucket->count);
    const double needed = std::min(std::ceil(left / mean), static_cast<double>(bucket->count));
    half.count += static_cast<std::uint64_t>(needed);
    half.least = mean;
    left -= bucket->sum;
  }
  return half;
}

void Distribution::pack(Archive& archive) {
  archive(buckets_, count_, largest_);
}

}  // namespace papaya::report
