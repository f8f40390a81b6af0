// What the calls of a candidate cost in a trial, and when one candidate is slower than another beyond doubt. Integers,
// so that all ranks find the same.
#pragma once

#include <cstdint>
#include <vector>

namespace papaya::tuning {

struct CallCost {
  std::int64_t ns;
  bool is_skewed;  // the ranks arrived over a longer time than it took
  int round = 0;   // of the trial
};

// 0 of none.
std::int64_t median(std::vector<std::int64_t> values) noexcept;

// Of the calls with that pattern of arrivals where there are enough, else of all.
std::vector<std::int64_t> comparable(const std::vector<CallCost>& costs, bool skewed);

// With more than 99.9 % confidence by Mann and Whitney's test, and, since calls of one block are not independent of
// each other (what disturbs one disturbs its neighbours), in every round but so many as well.
bool are_slower(const std::vector<CallCost>& ones, const std::vector<CallCost>& others, bool skewed, int exceptions);

}  // namespace papaya::tuning
