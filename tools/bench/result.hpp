// What a run of the benchmark found; written by measure, read by the outputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/collective.hpp"
#include "tools/bench/limits.hpp"
#include "tools/bench/operation.hpp"
#include "tools/bench/precision.hpp"
#include "tools/bench/statistics.hpp"

namespace papaya::bench {

// What rows of weakly consistent collectives, and of native beside them, have in addition.
struct WeakFigures {
  std::string collective;
  std::optional<int> slack;         // asked for
  std::optional<double> threshold;  // asked for, a share
  std::string of;                   // of what
  Aggregation aggregation = Aggregation::mean;
  std::optional<double> mean_ratio;        // to native's mean time inside, the median of the rounds
  std::optional<double> calls_per_second;  // of a rank, their mean; not where barriers keep them together
  // Not of native.
  std::optional<Summary> waited_us;  // the ranks' mean
  double staleness_mean = 0;         // clocks
  double staleness_max = 0;
  double ranks_mean = 0;  // whose contributions were in it
  double ranks_least = 0;
  double share_mean = 1;  // that took part
  double share_least = 1;
  double residual_mean = 0;
};

// Of nonblocking ones: the ranks' mean of the call alone, of the computation beside it, and of both together.
struct OverlapFigures {
  Summary pure_us;
  Summary compute_us;
  Summary total_us;
  double percent = 0;  // of the medians
  std::optional<Interval> interval;
};

struct Row {
  Collective collective{};  // of weakly consistent ones the counterpart
  Form form = Form::blocking;
  std::string algorithm;  // native, auto, or a selection
  std::size_t bytes = 0;
  std::uint64_t iterations = 0;
  Summary excess_us;
  Summary inside_us;
  Summary excess_max_us;  // over the ranks, whatever the aggregation
  Summary excess_mean_us;
  std::optional<Summary> root_inside_us;  // reduce, bcast
  double imbalance_us = 0;                // p50 of last arrival - first
  std::optional<double> ratio_to_native;
  Turns values_us;                      // the excess, of each turn; of calls back to back a value is a block's
  std::optional<Interval> interval_us;  // of the p50 excess
  std::optional<Interval> ratio_interval;
  std::optional<report::Judgement> judgement;  // against native; not of native
  Stop stop = Stop::none;
  std::vector<double> launches_us;  // --combine: the p50 excess of each launch
  // The smallest and the largest ratio of a single round.
  std::optional<double> ratio_lowest;
  std::optional<double> ratio_highest;
  std::optional<double> limit_us;
  double skew_us = 0;
  double alpha_us = 0;
  std::uint64_t checked_results = 0;  // in the timed part; all of them where calls are not back to back
  std::uint64_t wrong_results = 0;    // of these and of the warm-up's, on the rank with the most
  std::uint64_t early_exits = 0;      // calls that a rank left before all had come
  double missed_arrivals = 0;         // share of the arrivals that came late at their deadline
  std::optional<double> replaced;     // share of the calls that an algorithm served, if the library can tell
  std::optional<WeakFigures> weak = std::nullopt;
  std::optional<OverlapFigures> overlap = std::nullopt;
};

struct Result {
  int ranks = 1;
  int nodes = 1;
  int cores = 1;  // of all nodes
  std::string mpi;
  std::string pattern;
  std::string mode;
  double skew_us = 0;  // the largest of the rows
  std::optional<double> mif;
  std::optional<double> compute_us;  // weakly consistent collectives
  std::uint64_t seed = 0;
  int rounds = 0;
  int root = 0;
  int launches = 1;
  double margin = 5;        // percent
  double precision = 2;     // percent
  std::size_t samples = 0;  // values of a row in the JSON, at most
  double clock_error_us = 0;
  double others_share = 0;  // of the cores' time, taken by other jobs; the largest of the nodes
  Machine machine;
  std::vector<Row> rows;
};

inline Aggregation aggregation_of(const Row& row) noexcept {
  return row.weak ? row.weak->aggregation : aggregation_of(row.collective);
}

// Rows whose results were wrong, or whose algorithm did not run.
inline bool is_wrong(const Row& row) noexcept {
  return row.wrong_results != 0 || row.early_exits != 0;
}

}  // namespace papaya::bench
