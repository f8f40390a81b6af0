// When each rank was in the job, and how much of that time the calls that can be compared cover.
#pragma once

#include <span>
#include <vector>

#include "profiler/analysis/event_facts.hpp"
#include "profiler/read/clocks.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

// On node 0's clock.
struct RunTimes {
  std::vector<double> init_ns;  // by file: MPI_Init left
  std::vector<double> end_ns;   // by file: MPI_Finalize entered, or as far as the record goes
  double run_ns = 0;            // from the first of those to the last of these
  double recorded_ns = 0;       // of all ranks together: the part of the run where all their records hold single calls
};

// `facts` by file.
RunTimes run_times(const Run& run, const Clocks& clocks, std::span<const EventFacts> facts);

}  // namespace papaya::report
