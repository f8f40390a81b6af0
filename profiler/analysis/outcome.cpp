#include "profiler/analysis/outcome.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace papaya::report {

double student(double freedom) {
  constexpr std::array<double, 10> exact = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  const auto whole = static_cast<std::size_t>(std::max(1.0, freedom));
  if (whole <= exact.size()) return exact[whole - 1];
  constexpr double z = 1.959964;
  return z + (z * z * z + z) / (4 * freedom) + (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * freedom * freedom);
}

std::optional<Interval> interval_of_median(std::vector<double> values) {
  const std::size_t n = values.size();
  if (n < fewest_for_order_statistics) return std::nullopt;
  std::sort(values.begin(), values.end());
  // The median is below the (k+1)th smallest value with the probability that at most k of n fair coins show heads.
  double outside = 0;
  double coins = std::exp2(-static_cast<double>(std::min<std::size_t>(n, 1000)));
  if (n > 1000) {  // where 2^-n is no longer a number, the normal approximation is exact enough
    const double half = static_cast<double>(n) / 2;
    const auto skipped = static_cast<std::size_t>(std::floor(half - 1.959964 * std::sqrt(half / 2) - 0.5));
    return Interval{values[skipped], values[n - 1 - skipped]};
  }
  std::size_t skipped = 0;  // values left out at each end
  for (std::size_t heads = 0; heads < n / 2; ++heads) {
    outside += coins;
    if (outside > 0.025) break;
    skipped = heads;
    coins *= static_cast<double>(n - heads) / static_cast<double>(heads + 1);
  }
  return Interval{values[skipped], values[n - 1 - skipped]};
}

std::optional<Interval> interval_of_few(std::span<const double> values) {
  const std::size_t n = values.size();
  if (n >= fewest_for_order_statistics) return interval_of_median({values.begin(), values.end()});
  if (n < 2 || std::any_of(values.begin(), values.end(), [](double value) { return !(value > 0); }))
    return std::nullopt;
  double mean = 0;
  for (const double value : values) mean += std::log(value) / static_cast<double>(n);
  double squares = 0;
  for (const double value : values) squares += std::pow(std::log(value) - mean, 2);
  const auto freedom = static_cast<double>(n - 1);
  const double half = student(freedom) * std::sqrt(squares / freedom / static_cast<double>(n));
  return Interval{std::exp(mean - half), std::exp(mean + half)};
}

std::string_view name_of(Outcome outcome) {
  constexpr std::array<std::string_view, 4> names = {"SAME", "FASTER", "SLOWER", "UNCLEAR"};
  return names[static_cast<std::size_t>(outcome)];
}

Judgement judge(const std::optional<Interval>& ratio, double margin) {
  if (!ratio) return {Outcome::unclear, "too few values"};
  const std::string low = ratio_text(ratio->low);
  const std::string high = ratio_text(ratio->high);
  const std::string said = low == high ? low + ", " : fmt::format("{} to {}, ", low, high);
  if (1 - ratio->low < margin && ratio->high - 1 < margin)
    return {Outcome::same, fmt::format("{}within {:g} %", said, margin * 100)};
  if (ratio->high < 1) return {Outcome::faster, said + "all below 1"};
  if (ratio->low > 1) return {Outcome::slower, said + "all above 1"};
  return {Outcome::unclear, said + "too wide"};
}

std::string ratio_text(double ratio) {
  return ratio > 100 ? ">100" : ratio < 0.01 ? "<0.01" : fmt::format("{:.2f}", ratio);
}

}  // namespace papaya::report
