// The calls at which most was waited.
#pragma once

#include <cstddef>
#include <vector>

#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/arrivals.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

class Archive;

class CostlyCalls {
 public:
  // A call whose arrivals are `arrivals`.
  void add(const Run& run, const GroupCall& call, const Arrivals& arrivals);
  void merge(CostlyCalls&& next);
  void pack(Archive& archive);
  // Most waiting first, their times counted from `begin_ns`. Once, at the end.
  std::vector<CostlyCall> take(double begin_ns);

 private:
  std::vector<CostlyCall> kept_;
};

}  // namespace papaya::report
