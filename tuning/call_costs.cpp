#include "tuning/call_costs.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace papaya::tuning {

namespace {

constexpr std::size_t least_to_compare = 3;

// Mann and Whitney's U test, one-sided, in integers: z^2 > 10, where z = (U - nm/2) / sqrt(nm(n+m+1)/12).
bool are_larger(const std::vector<std::int64_t>& ones, const std::vector<std::int64_t>& others) noexcept {
  const auto n = static_cast<std::int64_t>(ones.size());
  const auto m = static_cast<std::int64_t>(others.size());
  std::int64_t twice_u = 0;
  for (const std::int64_t one : ones)
    for (const std::int64_t other : others) twice_u += one > other ? 2 : one == other ? 1 : 0;
  const std::int64_t difference = twice_u - n * m;
  return difference > 0 && 10 * 3 * difference * difference > 100 * n * m * (n + m + 1);
}

// Negative if nothing was measured in it.
std::int64_t median_of_round(const std::vector<CallCost>& costs, int round) {
  std::vector<std::int64_t> those;
  for (const CallCost& one : costs)
    if (one.round == round) those.push_back(one.ns);
  return those.empty() ? -1 : median(std::move(those));
}

bool are_larger_in_every_round(const std::vector<CallCost>& ones, const std::vector<CallCost>& others, int exceptions) {
  const int last = ones.empty() ? -1 : ones.back().round;
  for (int round = 0; round <= last; ++round) {
    const std::int64_t of_ones = median_of_round(ones, round);
    const std::int64_t of_others = median_of_round(others, round);
    if (of_ones >= 0 && of_others >= 0 && of_ones <= of_others) --exceptions;
  }
  return exceptions >= 0;
}

}  // namespace

std::int64_t median(std::vector<std::int64_t> values) noexcept {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<std::int64_t> comparable(const std::vector<CallCost>& costs, bool skewed) {
  std::vector<std::int64_t> all;
  std::vector<std::int64_t> alike;
  for (const CallCost& one : costs) {
    all.push_back(one.ns);
    if (one.is_skewed == skewed) alike.push_back(one.ns);
  }
  return alike.size() >= least_to_compare ? alike : all;
}

bool are_slower(const std::vector<CallCost>& ones, const std::vector<CallCost>& others, bool skewed, int exceptions) {
  return are_larger(comparable(ones, skewed), comparable(others, skewed)) &&
         are_larger_in_every_round(ones, others, exceptions);
}

}  // namespace papaya::tuning
