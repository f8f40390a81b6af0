#include "profiler/analysis/run_times.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace papaya::report {
namespace {

using Interval = std::pair<double, double>;  // ns

// When calls of some rank are missing between others of it, ascending and apart.
std::vector<Interval> times_in_gaps(const Clocks& clocks, std::span<const EventFacts> facts) {
  std::vector<Interval> all;
  for (std::size_t i = 0; i < facts.size(); ++i)
    for (const auto& [before, after] : facts[i].gaps)
      all.push_back({clocks.of_file(i).ns(before), clocks.of_file(i).ns(after)});
  std::sort(all.begin(), all.end());
  std::vector<Interval> merged;
  for (const Interval& one : all) {
    if (merged.empty() || one.first > merged.back().second)
      merged.push_back(one);
    else
      merged.back().second = std::max(merged.back().second, one.second);
  }
  return merged;
}

// The ring of a rank that wrapped begins later than its run. Calls are compared from where all rings have them.
double recorded_from(const Run& run, const Clocks& clocks, std::span<const EventFacts> facts, double first_init_ns) {
  double from_ns = first_init_ns;
  for (std::size_t i = 0; i < run.files.size(); ++i) {
    const RankFile& file = run.files[i];
    if (file.gaps.empty() || file.gaps.front().before != 0 || facts[i].kept == 0) continue;
    from_ns = std::max(from_ns, clocks.of_file(i).ns(facts[i].first_ticks));
  }
  return from_ns;
}

}  // namespace

RunTimes run_times(const Run& run, const Clocks& clocks, std::span<const EventFacts> facts) {
  RunTimes times;
  double first_init = std::numeric_limits<double>::max();
  double last_end = std::numeric_limits<double>::lowest();
  for (std::size_t i = 0; i < run.files.size(); ++i) {
    const RankFile& file = run.files[i];
    const NodeClock& clock = clocks.of_file(i);
    std::uint64_t end_ticks = file.header.end_ticks;
    if (end_ticks == 0) end_ticks = facts[i].last_ticks;
    const double init = clock.ns(std::max(file.header.init_ticks, file.header.begin_ticks));
    times.init_ns.push_back(init);
    times.end_ns.push_back(std::max(init, clock.ns(std::max(end_ticks, file.header.begin_ticks))));
    first_init = std::min(first_init, init);
    last_end = std::max(last_end, times.end_ns.back());
  }
  times.run_ns = last_end - first_init;
  // Of every rank until the last one came to MPI_Finalize, as run_ns has it: waiting there is time of the run, too.
  const double from = recorded_from(run, clocks, facts, first_init);
  double recorded = last_end - from;
  for (const auto& [begin, end] : times_in_gaps(clocks, facts))
    recorded -= std::max(0.0, std::min(end, last_end) - std::max(begin, from));
  times.recorded_ns = std::max(0.0, recorded) * static_cast<double>(run.files.size());
  return times;
}

}  // namespace papaya::report
