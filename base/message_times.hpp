// How long a message takes, by its size, from what was measured for some sizes.
#pragma once

#include <cstdint>
#include <vector>

namespace papaya {

// Between two nodes where it was not measured: a cluster of today.
inline constexpr double nominal_latency_ns = 1000;
inline constexpr double nominal_bytes_per_ns = 5;

class MessageTimes {
 public:
  struct Point {
    std::uint64_t bytes;
    double log_bytes;
    double log_ns;
  };

  // One way. Sizes ascend; any other, and one whose time is 0, is left out.
  void add(std::uint64_t bytes, std::uint64_t ns);

  // Log-log interpolated, the last segment prolonged. Nominal, where nothing was measured.
  double ns(double bytes) const;

  bool empty() const { return points_.empty(); }
  const std::vector<Point>& points() const { return points_; }

 private:
  std::vector<Point> points_;
};

}  // namespace papaya
