// PAPAYA_APPROX: which calls returned approximate results, and how far off those were that PAPAYA_VERIFY looked at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/read/read.hpp"

namespace papaya::report {

// One rule, summed over ranks.
struct ApproxFigures {
  std::string name;    // MPI_Allreduce
  std::string places;  // communicator "gradients"
  std::string bound;   // ssp_sharded, slack 2
  std::string why;     // of the first call that was exact all the same; empty: none
  std::uint64_t calls = 0;
  std::uint64_t approximate = 0;
  std::uint64_t aged = 0;
  std::uint64_t most_staleness = 0;
  std::uint64_t verified = 0;
  double median_error = 0;  // of the last 1,024 on each rank
  double largest_error = 0;

  // What a reader must not overlook, without a full stop.
  std::string sentence() const;
};

// In the order of PAPAYA_APPROX; none where it is not set.
std::vector<ApproxFigures> approx_figures(const Run& run);

}  // namespace papaya::report
