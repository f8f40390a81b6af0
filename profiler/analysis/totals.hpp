// What the records count of every call, compared or not.
#pragma once

#include <vector>

#include "profiler/analysis/analysis.hpp"
#include "profiler/read/clocks.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

// Calls, bytes and time of each collective and form that the program called, in their order.
std::vector<CollectiveFigures> totals_of(const Run& run, const Clocks& clocks);

// Which algorithm served how many calls and why others were native; most calls of a collective first.
std::vector<AlgorithmFigures> algorithms_of(const Run& run);

// Fills in how many cores the ranks have, and where they share them.
void count_cores(const Run& run, Analysis& analysis);

}  // namespace papaya::report
