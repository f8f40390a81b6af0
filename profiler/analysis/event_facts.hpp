// What is kept of a rank's events once they have been read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "profiler/analysis/archive.hpp"
#include "profiler/record/format.hpp"

namespace papaya::report {

struct EventFacts {
  std::uint64_t kept = 0;
  std::uint64_t skipped = 0;         // torn or damaged, besides those that the file's record counts
  std::uint64_t first_ticks = 0;     // arrival of the first one
  std::uint64_t last_ticks = 0;      // latest arrival or exit
  double timed_ns = 0;               // in timed functions, before the last one
  std::optional<trace::Event> last;  // blocking: what the rank is inside, or else left last
  std::vector<std::pair<std::uint64_t, std::uint64_t>> gaps;  // arrivals before and after those between events

  // Of the next part of the run, which adds no gaps.
  void merge(const EventFacts& next) {
    if (kept == 0) first_ticks = next.first_ticks;
    kept += next.kept;
    skipped += next.skipped;
    last_ticks = std::max(last_ticks, next.last_ticks);
    timed_ns += next.timed_ns;
    if (next.last) note(*next.last);
  }
  void pack(Archive& archive) { archive(kept, skipped, first_ticks, last_ticks, timed_ns, last, gaps); }
  // A blocking call after those before.
  void note(const trace::Event& event) {
    const bool is_inside = event.exit_ticks == 0;
    if (!last || is_inside || (last->exit_ticks != 0 && event.exit_ticks >= last->exit_ticks)) last = event;
  }
};

}  // namespace papaya::report
