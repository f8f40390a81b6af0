// What follows from the verdict: the run in a line for whoever pays for it, and what to do next.
#pragma once

#include <string>
#include <vector>

#include "profiler/analysis/analysis.hpp"
#include "profiler/report/verdict.hpp"

namespace papaya::report {

struct Advice {
  std::string in_short;  // one sentence or two, without terms of MPI; empty: nothing is known of the run's time
  std::vector<std::string> next;  // a step each, the most promising first, at most most_steps
};

inline constexpr std::size_t most_steps = 3;

Advice advice_on(const Analysis& analysis, const Verdict& verdict);

}  // namespace papaya::report
