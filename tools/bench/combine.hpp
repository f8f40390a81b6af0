// papaya bench --combine: several launches of one measurement as one.
#pragma once

#include <string>
#include <vector>

#include "tools/bench/options.hpp"
#include "tools/bench/result.hpp"

namespace papaya::bench {

// A launch as its JSON has it, as far as combining takes. False, with one sentence in `problem`, if it cannot be used.
bool read_launch(const std::string& text, Result& result, std::string& problem);

// Rows that all launches have. The median of a row is that of the launches' medians, its interval that of so few values
// (profiler/analysis/outcome): what makes launches differ is in it. Empty, with `problem`, if they measured different
// things.
Result combined(const std::vector<Result>& launches, double margin, std::string& problem);

// The exit code.
int combine(const Options& options);

}  // namespace papaya::bench
