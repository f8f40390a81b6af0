// PAPAYA_TUNING: rules for calls of a machine, as measured there. A file is JSON (docs/tuning.schema.json), or text
// with a selection for each collective (selection.hpp). Of JSON a rule that cannot be used is reported with its line
// and column and left out; the others stay in force. All ranks read the same text, rank 0's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/collective.hpp"
#include "tuning/native_algorithms.hpp"
#include "tuning/rule.hpp"
#include "tuning/selection_text.hpp"

namespace papaya::tuning {

// What was measured of one size and pattern that a rule is for. Nothing is chosen by it.
struct Measured {
  std::optional<std::uint64_t> bytes;
  std::string pattern;
  std::optional<double> skew_us;
  std::optional<double> excess_us;                      // the median
  std::optional<double> native_excess_us;               // native's
  std::optional<double> ratio;                          // to native's
  std::optional<std::array<double, 2>> ratio_interval;  // 95 %
  std::string outcome;                                  // SAME, FASTER, SLOWER or UNCLEAR
  std::optional<std::uint64_t> turns;
};

struct FileRule {
  Rule rule;
  Native native;                // if `rule` is native
  std::size_t first_alike = 0;  // the first row with its algorithm and values: plans are by rule, and one serves both
  std::size_t line = 0;
  std::string comment;
  std::vector<Measured> measured;
};

struct TuningFile {
  std::array<std::vector<FileRule>, collective_count> rows;  // the first that applies counts
  std::array<bool, collective_count> by_arrivals{};          // some of them are for one arrival pattern
  std::vector<std::string> sites;                            // call sites of Rule::site, the first bit's first
  std::array<std::uint64_t, collective_count> by_site{};     // bits of those that some of them are for
  std::vector<OldName> old_names;
};

inline constexpr std::size_t most_rows = 4096;  // of a collective
inline constexpr std::size_t most_sites = 64;

// JSON. Problems become warnings.
TuningFile read_tuning_file(std::string_view text, std::vector<std::string>& warnings);

}  // namespace papaya::tuning
