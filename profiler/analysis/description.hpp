// Which run it is, and which of its records are there.
#pragma once

#include "profiler/analysis/analysis.hpp"
#include "profiler/read/clocks.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

// From what each record says of itself, without its events.
void describe_run(const Run& run, Analysis& out);

void describe_clocks(const Clocks& clocks, Analysis& out);

}  // namespace papaya::report
