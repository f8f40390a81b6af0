// How long others waited for each rank, by collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/distribution.hpp"

namespace papaya::report {

class Archive;

class Delays {
 public:
  // The longest wait for the rank of file `file` at a call.
  void add(std::uint32_t file, std::size_t collective, double longest_ns) { of_[{file, collective}].add(longest_ns); }
  void merge(const Delays& next) {
    for (const auto& [key, delays] : next.of_) of_[key].merge(delays);
  }
  void pack(Archive& archive);
  // `ranks` by file.
  void write(std::vector<RankFigures>& ranks) const;

 private:
  std::map<std::pair<std::uint32_t, std::size_t>, Distribution> of_;
};

}  // namespace papaya::report
