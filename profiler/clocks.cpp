#include "profiler/clocks.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace papaya::report {

namespace {

// Bound assumed between nodes whose clocks were never compared: wall clocks are seldom closer.
constexpr double wall_clock_error_ns = 1e6;
// Quartz is better than a thousandth; two offsets that say otherwise are damaged.
constexpr double largest_drift = 1e-3;

const trace::ClockOffset* measured_offset(std::span<const RankFile* const> files, std::size_t which) {
  for (const RankFile* file : files) {
    if (file->header.clock[which].measured == 1) return &file->header.clock[which];
  }
  return nullptr;
}

// `files` are those of one node. All ranks of a node use one conversion: whatever its error, their order
// among themselves is then right.
NodeClock node_clock(std::span<const RankFile* const> files, std::int64_t base_unix_ns) {
  const trace::Header& header = files.front()->header;
  NodeClock clock;
  clock.origin_ticks = header.begin_ticks;
  clock.ns_per_tick = header.ns_per_tick;
  if (header.node == 0) return clock;
  const trace::ClockOffset* const at_init = measured_offset(files, 0);
  const trace::ClockOffset* const at_end = measured_offset(files, 1);
  if (at_init == nullptr && at_end == nullptr) {
    clock.measured = false;
    clock.error_ns = wall_clock_error_ns;
    clock.shift_ns = static_cast<double>(header.begin_unix_ns) - static_cast<double>(base_unix_ns);
    return clock;
  }
  const trace::ClockOffset& one = at_init != nullptr ? *at_init : *at_end;
  clock.shift_ns = static_cast<double>(one.offset_ns);
  clock.error_ns = static_cast<double>(one.error_ns);
  clock.measured_twice = false;
  if (at_init == nullptr || at_end == nullptr) return clock;
  const double from_ns = clock.node_ns(at_init->at_ticks);
  const double span_ns = clock.node_ns(at_end->at_ticks) - from_ns;
  const double change_ns = static_cast<double>(at_end->offset_ns) - static_cast<double>(at_init->offset_ns);
  const double errors_ns = clock.error_ns + static_cast<double>(at_end->error_ns);
  if (span_ns <= 0 || std::abs(change_ns) > largest_drift * span_ns + errors_ns) return clock;
  const double drift = change_ns / std::max(span_ns, 1.0);
  clock.measured_twice = true;
  clock.scale = 1 + drift;
  clock.shift_ns -= drift * from_ns;
  clock.error_ns = std::max(clock.error_ns, static_cast<double>(at_end->error_ns));
  return clock;
}

}  // namespace

Clocks::Clocks(const Run& run) {
  std::map<std::int32_t, std::vector<const RankFile*>> by_node;
  for (const RankFile& file : run.files) by_node[file.header.node].push_back(&file);
  if (by_node.empty()) return;
  std::map<std::int32_t, std::size_t> index;
  // Of node 0, or of the lowest node there is a record of.
  base_unix_ns_ = by_node.begin()->second.front()->header.begin_unix_ns;
  for (const auto& [node, files] : by_node) {
    index[node] = clocks_.size();
    clocks_.push_back(node_clock(files, base_unix_ns_));
  }
  for (const RankFile& file : run.files) index_.push_back(index[file.header.node]);
}

}  // namespace papaya::report
