#include "base/message_times.hpp"

#include <algorithm>
#include <cmath>

namespace papaya {

void MessageTimes::add(std::uint64_t bytes, std::uint64_t ns) {
  if (bytes == 0 || ns == 0) return;
  const double log_bytes = std::log(static_cast<double>(bytes));
  // Huge sizes that follow each other have one logarithm, and no line goes through the two.
  if (!points_.empty() && log_bytes <= points_.back().log_bytes) return;
  points_.push_back({bytes, log_bytes, std::log(static_cast<double>(ns))});
}

double MessageTimes::ns(double bytes) const {
  if (points_.empty()) return nominal_latency_ns + bytes / nominal_bytes_per_ns;
  const Point& first = points_.front();
  const double x = bytes <= 0 ? first.log_bytes : std::log(bytes);
  // A smaller message than the smallest measured takes as long: latency.
  if (x <= first.log_bytes) return std::exp(first.log_ns);
  if (points_.size() == 1) return std::exp(first.log_ns + x - first.log_bytes);
  std::size_t right = 1;
  while (right + 1 < points_.size() && points_[right].log_bytes < x) ++right;
  const Point& a = points_[right - 1];
  const Point& b = points_[right];
  const double slope = (b.log_ns - a.log_ns) / (b.log_bytes - a.log_bytes);
  // No message takes more than proportionally longer than the largest measured: keeps damaged tables finite.
  return std::exp(x <= b.log_bytes ? a.log_ns + slope * (x - a.log_bytes)
                                   : b.log_ns + std::clamp(slope, 0.0, 1.0) * (x - b.log_bytes));
}

}  // namespace papaya
