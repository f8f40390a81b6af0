#include "profiler/analysis/alpha.hpp"

#include <cmath>
#include <map>

#include "profiler/analysis/archive.hpp"

namespace papaya::report {

Alpha::Alpha(const std::vector<RankFile>& files) {
  for (const RankFile& file : files) {
    if (node_.empty()) node_ = times_of(file.header, &trace::Alpha::node_ns);
    if (cluster_.empty()) cluster_ = times_of(file.header, &trace::Alpha::cluster_ns);
  }
}

double Alpha::ns(std::uint64_t bytes, bool across_nodes) {
  Last& last = last_[across_nodes ? 1 : 0];
  if (!last.valid || last.bytes != bytes) last = {true, bytes, compute(bytes, across_nodes)};
  return last.ns;
}

std::vector<MessageTime> Alpha::message_times() const {
  std::map<std::uint64_t, MessageTime> by_size;
  for (const MessageTimes::Point& point : node_.points()) by_size[point.bytes].node_ns = std::exp(point.log_ns);
  for (const MessageTimes::Point& point : cluster_.points()) by_size[point.bytes].cluster_ns = std::exp(point.log_ns);
  std::vector<MessageTime> times;
  for (auto& [bytes, time] : by_size) {
    time.bytes = bytes;
    times.push_back(time);
  }
  return times;
}

MessageTimes Alpha::times_of(const RankHeader& header, std::uint64_t trace::Alpha::*ns) {
  MessageTimes times;
  std::uint64_t previous_bytes = 0;
  for (const trace::Alpha& entry : header.alpha) {
    if (entry.bytes <= previous_bytes) break;
    previous_bytes = entry.bytes;
    times.add(entry.bytes, entry.*ns);
  }
  return times;
}

double Alpha::compute(std::uint64_t bytes, bool across_nodes) {
  const MessageTimes& times = across_nodes && !cluster_.empty() ? cluster_ : node_;
  used_nominal_ = used_nominal_ || times.empty();
  return times.ns(static_cast<double>(bytes));
}

// The times are those of the run.
void Alpha::pack(Archive& archive) {
  archive(used_nominal_);
}

}  // namespace papaya::report
