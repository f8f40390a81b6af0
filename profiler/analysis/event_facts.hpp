// What is kept of a rank's events once they have been read.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

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
};

}  // namespace papaya::report
