// Sums over calls that become averages and percentiles.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "profiler/analysis/analysis.hpp"

namespace papaya::report {

struct ImbalanceSum {
  Imbalance sum;

  void add(const WorstAverage& imbalance, double alpha_ns);
  Imbalance average() const;
};

// Sorts the samples in part.
Spread spread_of(std::vector<double>& samples_ns);

struct CollectiveSums {
  std::array<ImbalanceSum, size_class_count> cluster_by_size;
  std::array<ImbalanceSum, size_class_count> node_by_size;
  ImbalanceSum cluster;
  ImbalanceSum node;
  std::vector<double> inside_ns;
  std::vector<double> excess_ns;
  double waiting_ns = 0;
};

// Of `count` arrivals, one or more; `at(i)` is the i-th.
template <typename At>
WorstAverage imbalance_of(std::size_t count, At at) {
  double low = at(0);
  double high = low;
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double a = at(i);
    low = std::min(low, a);
    high = std::max(high, a);
    sum += a - at(0);  // relative to the first: keeps ns exact in a run of days
  }
  const double mean = at(0) + sum / static_cast<double>(count);
  double deviation = 0;
  for (std::size_t i = 0; i < count; ++i) deviation += std::abs(at(i) - mean);
  return {high - low, deviation / static_cast<double>(count)};
}

}  // namespace papaya::report
