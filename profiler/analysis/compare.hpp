// Runs before a change against runs after it: how long calls take, wait and take beyond the earliest legal exit, with
// 95 % intervals of the ratio after / before.
//
// A sample is one call: the mean over its ranks. Calls one after the other are alike, so that they tell less than so
// many independent ones: intervals come from a bootstrap that draws blocks of consecutive calls, as long as the
// samples' autocorrelation asks for (Carlstein 1986). It knows nothing of what makes whole runs differ. Where both
// sides have several runs, the interval is Welch's of the logarithms of the runs' means instead, which does.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/outcome.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

// The calls of one collective and size, or from one call site, in one run: a value for each call, in their order.
struct Samples {
  std::vector<double> inside_ns;
  std::vector<double> waiting_ns;
  std::vector<double> excess_ns;
};

struct RowKey {
  bool is_site = false;
  std::string name;   // MPI_Allreduce
  std::string where;  // size class or call site
  bool operator==(const RowKey&) const = default;
  auto operator<=>(const RowKey&) const = default;
};

// What is compared of one run.
struct RunSamples {
  std::string folder;
  std::map<std::string, std::string> facts;     // program, MPI, ranks and what else may explain a difference
  std::map<std::string, std::string> settings;  // without where the output goes
  std::map<std::string, std::map<std::string, std::uint64_t>> algorithms;  // of a collective: "native (why)" and calls
  bool partial = false;
  double run_ns = 0;
  std::map<RowKey, Samples> rows;
};

// Gives frames their names (tools/symbols.hpp), so that sites of two builds can be told to be the same.
using NameFrames = std::function<void(const std::vector<std::vector<NamedFrame>*>&)>;
RunSamples samples_of(const Run& run, const NameFrames& name_frames);

// The margin of SAME.
inline constexpr double least_change = 0.02;
// With fewer calls there is no interval.
inline constexpr std::size_t fewest_calls = 10;

struct Change {
  double before_ns = 0;  // means; of several runs on both sides geometric ones
  double after_ns = 0;
  double ratio = std::numeric_limits<double>::quiet_NaN();  // NaN: nothing to divide by
  double low = std::numeric_limits<double>::quiet_NaN();    // NaN: no interval
  double high = std::numeric_limits<double>::quiet_NaN();
  Judgement judgement;
};

struct ComparedRow {
  RowKey key;
  std::uint64_t calls_before = 0;
  std::uint64_t calls_after = 0;
  Change inside;
  Change waiting;
  Change excess;
};

struct Difference {
  std::string name;
  std::string before;
  std::string after;
};

struct Comparison {
  std::size_t runs_before = 0;
  std::size_t runs_after = 0;
  Change run_time;                // of a run
  Change collectives;             // time inside the compared calls in a run, mean over ranks
  std::vector<ComparedRow> rows;  // in both, most time first
  std::vector<RowKey> only_before;
  std::vector<RowKey> only_after;
  std::vector<Difference> facts;
  std::vector<Difference> settings;
  std::vector<Difference> algorithms;
  std::string verdict;
  std::vector<std::string> notes;
};

Comparison compare(std::span<const RunSamples> before, std::span<const RunSamples> after);

}  // namespace papaya::report
