// The report in a sentence: who is late, and what that costs.
#pragma once

#include <string>

#include "profiler/analysis/analysis.hpp"

namespace papaya::report {

std::string verdict_on(const Analysis& analysis);

}  // namespace papaya::report
