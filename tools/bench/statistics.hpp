// From arrivals and exits to the figures of a row. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/collective.hpp"

namespace papaya::bench {

struct Summary {
  double mean = 0;
  double p50 = 0;
  double p99 = 0;
  double max = 0;
  double min = 0;
};

// Quantiles are the smallest value with at least that share of the values not above it; of an even number of
// values p50 is the mean of the middle two. All 0 without values.
Summary summarize(std::vector<double> values);
double median(std::vector<double> values);

// OSU's: how much of a call is hidden behind a computation, in percent of the call alone; 0 where it makes it longer.
double overlap_percent(double pure_us, double computed_us, double total_us) noexcept;

// When rank i may leave the call at the earliest, whatever the algorithm.
double earliest_exit(Collective collective, std::span<const double> arrivals, int rank, int root) noexcept;

// Over the ranks of one call: the maximum where all ranks wait for all; of collectives with a root, whose ranks may
// leave before others have come, the mean.
enum class Aggregation : std::uint8_t { maximum, mean };
Aggregation aggregation_of(Collective collective) noexcept;

// One call in microseconds.
struct CallTimes {
  double excess = 0;  // e - l, aggregated as above
  double inside = 0;  // e - a, aggregated as above
  double excess_max = 0;
  double excess_mean = 0;
  double root_inside = 0;                    // e - a of the root
  double imbalance = 0;                      // last arrival - first arrival
  double first_exit_after_last_arrival = 0;  // below 0: a rank left before all had come
};
CallTimes times_of(Collective collective, std::span<const double> arrivals, std::span<const double> exits,
                   int root) noexcept;

}  // namespace papaya::bench
