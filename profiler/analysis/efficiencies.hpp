// POP's efficiencies of the run and of the ranks of each communicator over the run.
#pragma once

#include <span>
#include <vector>

#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/matching.hpp"

namespace papaya::report {

// `ranks` by file; the analysis has the run's time, and its communicators are those of `groups`, in that order.
void measure_efficiencies(const Run& run, std::span<const Group> groups, const std::vector<RankTime>& ranks,
                          Analysis& analysis);

}  // namespace papaya::report
