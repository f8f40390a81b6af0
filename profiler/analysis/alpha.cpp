#include "profiler/analysis/alpha.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "profiler/analysis/archive.hpp"

namespace papaya::report {

Alpha::Alpha(const std::vector<RankFile>& files) {
  for (const RankFile& file : files) {
    if (node_.empty()) node_ = points_of(file.header, &trace::Alpha::node_ns);
    if (cluster_.empty()) cluster_ = points_of(file.header, &trace::Alpha::cluster_ns);
  }
}

double Alpha::ns(std::uint64_t bytes, bool across_nodes) {
  Last& last = last_[across_nodes ? 1 : 0];
  if (!last.valid || last.bytes != bytes) last = {true, bytes, compute(bytes, across_nodes)};
  return last.ns;
}

std::vector<MessageTime> Alpha::message_times() const {
  std::map<std::uint64_t, MessageTime> by_size;
  for (const Point& point : node_) by_size[point.bytes].node_ns = std::exp(point.log_ns);
  for (const Point& point : cluster_) by_size[point.bytes].cluster_ns = std::exp(point.log_ns);
  std::vector<MessageTime> times;
  for (auto& [bytes, time] : by_size) {
    time.bytes = bytes;
    times.push_back(time);
  }
  return times;
}

std::vector<Alpha::Point> Alpha::points_of(const RankHeader& header, std::uint64_t trace::Alpha::*ns) {
  std::vector<Point> points;
  std::uint64_t previous_bytes = 0;
  for (const trace::Alpha& entry : header.alpha) {
    if (entry.bytes <= previous_bytes) break;
    previous_bytes = entry.bytes;
    if (entry.*ns == 0) continue;
    const double log_bytes = std::log(static_cast<double>(entry.bytes));
    // Huge sizes that follow each other have one logarithm, and no line goes through the two.
    if (!points.empty() && log_bytes <= points.back().log_bytes) continue;
    points.push_back({entry.bytes, log_bytes, std::log(static_cast<double>(entry.*ns))});
  }
  return points;
}

double Alpha::compute(std::uint64_t bytes, bool across_nodes) {
  const std::vector<Point>& points = across_nodes && !cluster_.empty() ? cluster_ : node_;
  if (points.empty()) {
    used_nominal_ = true;
    return nominal_latency_ns + static_cast<double>(bytes) / nominal_bytes_per_ns;
  }
  const double x = bytes == 0 ? points.front().log_bytes : std::log(static_cast<double>(bytes));
  // A smaller message than the smallest measured takes as long: latency.
  if (x <= points.front().log_bytes) return std::exp(points.front().log_ns);
  if (points.size() == 1) return std::exp(points.front().log_ns + x - points.front().log_bytes);
  std::size_t right = 1;
  while (right + 1 < points.size() && points[right].log_bytes < x) ++right;
  const Point& a = points[right - 1];
  const Point& b = points[right];
  // No message takes more than proportionally longer than the largest measured: keeps damaged tables
  // finite.
  const double slope = (b.log_ns - a.log_ns) / (b.log_bytes - a.log_bytes);
  const double y = x <= b.log_bytes ? a.log_ns + slope * (x - a.log_bytes)
                                    : b.log_ns + std::clamp(slope, 0.0, 1.0) * (x - b.log_bytes);
  return std::exp(y);
}

// The times are those of the run.
void Alpha::pack(Archive& archive) {
  archive(used_nominal_);
}

}  // namespace papaya::report
