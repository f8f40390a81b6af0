// What ranks make the others lose at the calls of one call site, by rank and time: only where they do, for that is
// seldom more than one rank of a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "profiler/analysis/analysis.hpp"

namespace papaya::report {

class SiteLosses {
 public:
  struct Cell {
    std::uint32_t place;  // row * bins + bin, as in HeatMap
    float ns;
  };

  explicit SiteLosses(std::size_t bins) : lost_ns_(bins) {}

  // Of a call that is over in `bin`. Once there are more than twice `most` cells, the costliest `most` stay.
  void add(const ComparedCall& call, std::size_t bin, std::size_t most);
  // By place; of more than `most`, the costliest.
  std::vector<Cell> cells(std::size_t most) const;
  bool is_whole() const { return is_whole_; }                      // no cell was left out
  const std::vector<double>& lost_ns() const { return lost_ns_; }  // by bin, exact

 private:
  std::vector<Cell> cells_;  // several of a place since they were last summed up
  std::vector<double> lost_ns_;
  bool is_whole_ = true;
};

}  // namespace papaya::report
