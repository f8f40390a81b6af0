// The imbalance of a call, and sums over calls that become averages and percentiles.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "profiler/analysis/analysis.hpp"

namespace papaya::report {

struct ImbalanceSum {
  Imbalance sum;

  void add(const WorstAverage& imbalance, double alpha_ns);
  void merge(const ImbalanceSum& other);
  Imbalance average() const;
};

class Archive;

// Values of which a Spread is made: exact of up to most_exact; of more, percentiles are off by 0.1 % at most.
class Samples {
 public:
  void add(double ns);
  void merge(const Samples& other);
  void pack(Archive& archive);
  // Once, at the end.
  Spread spread();

 private:
  static constexpr std::size_t most_exact = 1 << 16;
  static constexpr std::size_t bits = 9;                    // of a value that choose its bucket, besides the exponent
  static constexpr std::size_t buckets = (64 << bits) + 1;  // up to 2^64 ns

  void use_buckets();
  void add_to_bucket(double ns);
  double percentile(std::size_t percent);

  std::vector<double> exact_;
  std::vector<std::uint64_t> buckets_;  // from 1 ns on, the first one for all less; empty while the values are exact
  std::uint64_t count_ = 0;
  double sum_ns_ = 0;
  double least_ns_ = 0;
  double most_ns_ = 0;
};

struct CollectiveSums {
  std::array<ImbalanceSum, size_class_count> cluster_by_size;
  std::array<ImbalanceSum, size_class_count> node_by_size;
  ImbalanceSum cluster;
  ImbalanceSum node;
  Samples inside_ns;
  Samples excess_ns;
  double waiting_ns = 0;

  void merge(const CollectiveSums& other);
  void pack(Archive& archive);
};

// Of one call, from what each of its ranks waited: one rank or more, and one of them waited for nobody.
WorstAverage imbalance_of(std::span<const double> waits_ns);

}  // namespace papaya::report
