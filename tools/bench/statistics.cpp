#include "tools/bench/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tools/bench/operation.hpp"

namespace papaya::bench {

namespace {

double median_of_sorted(std::span<const double> sorted) {
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 != 0 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

bool is_rooted(Collective collective) noexcept {
  return is_from_root(collective) || is_to_root(collective);
}

}  // namespace

Summary summarize(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  const auto position = static_cast<std::size_t>(std::ceil(0.99 * count)) - 1;
  return {std::accumulate(values.begin(), values.end(), 0.0) / count, median_of_sorted(values), values[position],
          values.back(), values.front()};
}

double median(std::vector<double> values) {
  return summarize(std::move(values)).p50;
}

double overlap_percent(double pure_us, double computed_us, double total_us) noexcept {
  return pure_us > 0 ? std::clamp(100 * (1 - (total_us - computed_us) / pure_us), 0.0, 100.0) : 0;
}

double earliest_exit(Collective collective, std::span<const double> arrivals, int rank, int root) noexcept {
  const double own = arrivals[static_cast<std::size_t>(rank)];
  if (is_from_root(collective)) return std::max(own, arrivals[static_cast<std::size_t>(root)]);
  if (is_to_root(collective) && rank != root) return own;
  return *std::max_element(arrivals.begin(), arrivals.end());
}

Aggregation aggregation_of(Collective collective) noexcept {
  return is_rooted(collective) ? Aggregation::mean : Aggregation::maximum;
}

CallTimes times_of(Collective collective, std::span<const double> arrivals, std::span<const double> exits,
                   int root) noexcept {
  const double last = *std::max_element(arrivals.begin(), arrivals.end());
  const auto ranks = static_cast<double>(arrivals.size());
  double excess_max = -1e300, excess_sum = 0, inside_max = -1e300, inside_sum = 0;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const double excess = exits[i] - earliest_exit(collective, arrivals, static_cast<int>(i), root);
    const double inside = exits[i] - arrivals[i];
    excess_max = std::max(excess_max, excess);
    inside_max = std::max(inside_max, inside);
    excess_sum += excess;
    inside_sum += inside;
  }
  const bool mean = aggregation_of(collective) == Aggregation::mean;
  CallTimes times;
  times.excess = mean ? excess_sum / ranks : excess_max;
  times.inside = mean ? inside_sum / ranks : inside_max;
  times.excess_max = excess_max;
  times.excess_mean = excess_sum / ranks;
  if (is_rooted(collective))
    times.root_inside = exits[static_cast<std::size_t>(root)] - arrivals[static_cast<std::size_t>(root)];
  times.imbalance = last - *std::min_element(arrivals.begin(), arrivals.end());
  times.first_exit_after_last_arrival = *std::min_element(exits.begin(), exits.end()) - last;
  return times;
}

}  // namespace papaya::bench
