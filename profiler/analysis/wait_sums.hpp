// Waiting in blocking collectives, and late exits from them, by what is waited for.
#pragma once

#include <array>
#include <vector>

#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/arrivals.hpp"
#include "profiler/analysis/wait_kinds.hpp"

namespace papaya::report {

class Archive;

class WaitSums {
 public:
  explicit WaitSums(std::size_t files) : waited_ns_(files) {}

  void add(Collective collective, const Arrivals& arrivals);
  // The next part of the run.
  void merge(const WaitSums& next);
  void pack(Archive& archive);
  // Fills in each rank's, `ranks` by file, and the run's.
  void write(std::vector<RankFigures>& ranks, Analysis& analysis) const;

 private:
  std::vector<std::array<double, wait_kind_count>> waited_ns_;  // by file
  std::array<double, wait_kind_count> late_exit_ns_{};
};

}  // namespace papaya::report
