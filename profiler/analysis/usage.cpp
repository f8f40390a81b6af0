#include "profiler/analysis/usage.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "profiler/read/units.hpp"

namespace papaya::report {

namespace {

// What is a reason: so much of the rank's time, or so many pages, and so many times the median.
constexpr double least_major_faults = 100;
constexpr double times_median = 2;

}  // namespace

UsageFigures usage_figures(const trace::Usage& usage) {
  UsageFigures figures;
  if (usage.wall_ns == 0) return figures;
  const auto wall_ns = static_cast<double>(usage.wall_ns);
  figures.is_known = true;
  figures.cpu_share = (static_cast<double>(usage.user_ns) + static_cast<double>(usage.system_ns)) / wall_ns;
  figures.knows_core_wait = usage.core_wait_ns != ~std::uint64_t{0};
  if (figures.knows_core_wait) figures.core_wait_share = static_cast<double>(usage.core_wait_ns) / wall_ns;
  figures.involuntary_per_s = static_cast<double>(usage.involuntary_switches) / wall_ns * 1e9;
  figures.major_faults = static_cast<double>(usage.major_faults);
  figures.minor_faults = static_cast<double>(usage.minor_faults);
  figures.peak_bytes = static_cast<double>(usage.peak_bytes);
  figures.core = usage.core;
  figures.core_ghz = static_cast<double>(usage.core_khz) / 1e6;
  return figures;
}

UsageFigures median_of(const std::vector<UsageFigures>& ranks) {
  UsageFigures median;
  const auto of = [&](double UsageFigures::*figure, bool UsageFigures::*is_known) {
    std::vector<double> values;
    for (const UsageFigures& rank : ranks)
      if (rank.*is_known) values.push_back(rank.*figure);
    if (values.empty()) return 0.0;
    median.*is_known = true;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  };
  median.core_wait_share = of(&UsageFigures::core_wait_share, &UsageFigures::knows_core_wait);
  for (double UsageFigures::*const figure :
       {&UsageFigures::cpu_share, &UsageFigures::involuntary_per_s, &UsageFigures::major_faults,
        &UsageFigures::minor_faults, &UsageFigures::peak_bytes})
    median.*figure = of(figure, &UsageFigures::is_known);
  return median;
}

WhySlow why_slow(int rank, const UsageFigures& figures, const UsageFigures& median) {
  if (figures.knows_core_wait && figures.core_wait_share >= least_core_wait_share &&
      figures.core_wait_share >= times_median * median.core_wait_share)
    return {SlowReason::no_core,
            fmt::format("Rank {} was ready to run but had no core for {} of its time (median of the ranks: {}): look "
                        "for other processes or threads on its cores.",
                        rank, share_text(figures.core_wait_share), share_text(median.core_wait_share))};
  if (figures.major_faults >= least_major_faults && figures.major_faults >= times_median * median.major_faults)
    return {SlowReason::pages_from_disk,
            fmt::format("Rank {} waited for {} pages of memory to be read from disk (median of the ranks: {}): look at "
                        "its node's memory and file system.",
                        rank, count_text(static_cast<std::uint64_t>(figures.major_faults)),
                        count_text(static_cast<std::uint64_t>(median.major_faults)))};
  return {};
}

}  // namespace papaya::report
