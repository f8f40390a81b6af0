#include "profiler/analysis/computing.hpp"

#include <algorithm>
#include <map>

namespace papaya::report {

Computing::Computing(const Run& run, const Clocks& clocks) {
  for (std::size_t i = 0; i < run.files.size(); ++i) {
    const RankFile& file = run.files[i];
    const double ns_per_tick = clocks.of_file(i).ns_per_tick;
    std::vector<double>& computed = computed_ns_.emplace_back();
    std::vector<double>& timed = timed_ns_.emplace_back();
    computed.reserve(file.events.size());
    timed.reserve(file.events.size());
    std::map<std::uint16_t, std::uint64_t> left_ticks;  // by thread
    double computed_ns = 0;
    double timed_ns = 0;
    for (const trace::Event& event : file.events) {
      const auto [left, is_first] = left_ticks.try_emplace(event.thread, file.header.init_ticks);
      const trace::Interval* const interval = interval_of(file, event);
      const std::uint64_t since =
          left->second == 0 ? 0 : event.arrival_ticks - std::min(left->second, event.arrival_ticks);
      const std::uint64_t in_mpi = interval == nullptr ? 0 : std::min(interval->mpi_ticks, since);
      computed_ns += static_cast<double>(since - in_mpi) * ns_per_tick;
      timed_ns += static_cast<double>(in_mpi) * ns_per_tick;
      left->second = std::max(event.exit_ticks, event.arrival_ticks);
      computed.push_back(computed_ns);
      timed.push_back(timed_ns);
    }
  }
}

double lower_median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace papaya::report
