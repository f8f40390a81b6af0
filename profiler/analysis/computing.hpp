// What comparisons of how long ranks computed have in common.
#pragma once

#include <vector>

namespace papaya::report {

// Of an even number the lower one of the two in the middle: of two ranks the one that is not late. Reorders them.
double lower_median(std::vector<double>& values);

// Of a delay, for a rank to have begun it.
inline constexpr double enough_evidence = 0.8;

}  // namespace papaya::report
