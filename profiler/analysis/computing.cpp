#include "profiler/analysis/computing.hpp"

#include <algorithm>
#include <cstddef>

namespace papaya::report {

double lower_median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace papaya::report
