// What each rank measured of one call, and what all ranks know of it once they have exchanged that: two steps, the
// largest of the ranks' numbers and, with those, the sums. All are integers, in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace papaya::tuning {

// One measured call as this rank saw it. On one node, what of its time inside is the algorithm's begins with the
// arrival of somebody: of the last rank where all wait for all; of the root, or its own if that is later, in a
// broadcast; of the last rank at the root of a reduction, of its own elsewhere.
struct Sample {
  std::int64_t arrival_ns = 0;
  std::int64_t exit_ns = 0;
  bool is_waited_for = true;  // the others wait for this rank
  bool waits = true;          // for those that are waited for
};

// What all ranks know of it. Without a clock that is common to the ranks it is taken to be a call in which all wait for
// all, where the rank that arrives last is inside for the shortest time.
struct MeasuredCall {
  bool is_whole = false;       // all ranks measured it; else the rest means nothing
  std::int64_t cost_ns = 0;    // the ranks' mean; without a common clock as `Clocks` says
  std::int64_t spread_ns = 0;  // from the first arrival to the last
  std::int64_t wait_ns = 0;    // the longest, for who was waited for; below 0: that one came first
  int late = -1;               // who was waited for longest; -1: two came at the same moment
  bool operator==(const MeasuredCall&) const = default;
};

// Of one clock on all ranks? If of several, what a call costs is the shortest time inside where all wait for all; of a
// collective with a root, in which a rank that comes late finds all done, it is the mean of the times inside, waiting
// included, and nothing is known of arrivals.
enum class Clocks : std::uint8_t { one, several, several_rooted };

// Of the numbers of one call.
inline constexpr std::size_t largest_per_sample = 4;
inline constexpr std::size_t sums_per_sample = 3;

// Adds this rank's numbers for the first step, and for the second with those that the first has had as its result.
// `sample`: null if this rank did not measure the call.
void add_largest(const Sample* sample, Clocks clocks, std::vector<std::int64_t>& numbers);
void add_sums(const Sample* sample, std::span<const std::int64_t, largest_per_sample> largest, Clocks clocks, int rank,
              std::vector<std::int64_t>& numbers);

MeasuredCall measured(std::span<const std::int64_t, largest_per_sample> largest,
                      std::span<const std::int64_t, sums_per_sample> sums, Clocks clocks, int ranks) noexcept;

}  // namespace papaya::tuning
