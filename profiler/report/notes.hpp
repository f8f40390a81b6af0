// What to know before trusting the figures.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "profiler/analysis/analysis.hpp"

namespace papaya::report {

// One sentence or two each.
std::vector<std::string> notes_on(const Analysis& analysis);

// "rank 3", "ranks 0-2, 5"
std::string ranks_text(std::span<const RankRange> ranges);

}  // namespace papaya::report
