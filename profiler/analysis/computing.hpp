// How long each rank computed, that is was outside MPI, between its collective calls.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/read/clocks.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

class Computing {
 public:
  Computing(const Run& run, const Clocks& clocks);

  // By the rank of file `file` before its event `event`, from event number `since` - 1 on; 0: from MPI_Init on.
  double ns(std::uint32_t file, std::uint32_t since, std::uint32_t event) const {
    return computed_ns_[file][event] - (since == 0 ? 0.0 : computed_ns_[file][since - 1]);
  }
  // The same in timed functions.
  double timed_ns(std::uint32_t file, std::uint32_t since, std::uint32_t event) const {
    return timed_ns_[file][event] - (since == 0 ? 0.0 : timed_ns_[file][since - 1]);
  }

 private:
  // By file: before each event, summed.
  std::vector<std::vector<double>> computed_ns_;
  std::vector<std::vector<double>> timed_ns_;
};

// Of an even number the lower one of the two in the middle: of two ranks the one that is not late. Reorders them.
double lower_median(std::vector<double>& values);

// Of a delay, for a rank to have begun it.
inline constexpr double enough_evidence = 0.8;

}  // namespace papaya::report
