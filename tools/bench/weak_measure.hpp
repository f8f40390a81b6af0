// Weakly consistent collectives and their consistent counterparts in turn, round by round, at each message size.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/bench/measure.hpp"

namespace papaya::bench {

// Why this run's algorithms cannot be used at all; empty if they can.
std::string weak_problem(const Options& options);

// Measures all candidates at one size. Collective; rank 0 has the rows. `problem` and `step` as of measure_size.
std::vector<Row> measure_weak_size(Job& job, std::size_t bytes, const std::function<void(const std::string&)>& problem,
                                   const std::function<void(double, const std::string&)>& step);

}  // namespace papaya::bench
