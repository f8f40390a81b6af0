#include "profiler/read/clocks.hpp"

#include <map>
#include <optional>
#include <utility>

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

// One clock against another: add it to the one's time.
struct Comparison {
  double offset_ns;
  double error_ns;
  double bound_ns;
  double at_ns;  // on the one's clock
};

// A line through both, or at the one there is.
void fit(NodeClock& clock, const std::optional<Comparison>& at_init, const std::optional<Comparison>& at_end) {
  const Comparison& one = at_init ? *at_init : *at_end;
  clock.shift_ns = one.offset_ns;
  clock.error_ns = one.error_ns;
  clock.bound_ns = one.bound_ns;
  clock.compared_ns = one.at_ns + one.offset_ns;
  clock.measured_twice = false;
  if (!at_init || !at_end) return;
  const double span_ns = at_end->at_ns - at_init->at_ns;
  const double change_ns = at_end->offset_ns - at_init->offset_ns;
  if (span_ns <= 0 || std::abs(change_ns) > largest_drift * span_ns + at_init->bound_ns + at_end->bound_ns) return;
  const double drift = change_ns / std::max(span_ns, 1.0);
  clock.measured_twice = true;
  clock.scale = 1 + drift;
  clock.shift_ns -= drift * at_init->at_ns;
  clock.error_ns = std::max(clock.error_ns, at_end->error_ns);
  clock.bound_ns = std::max(clock.bound_ns, at_end->bound_ns);
}

// `files` are those of one node, `others` the clocks of lower ones. All ranks of a node use one conversion: whatever
// its error, their order among themselves is then right.
NodeClock node_clock(std::span<const RankFile* const> files, const std::map<std::int32_t, NodeClock>& others,
                     std::int64_t base_unix_ns) {
  const RankHeader& header = files.front()->header;
  NodeClock clock;
  clock.origin_ticks = header.begin_ticks;
  clock.ns_per_tick = header.ns_per_tick;
  if (header.node == 0) return clock;
  const trace::ClockOffset* const measured[2] = {measured_offset(files, 0), measured_offset(files, 1)};
  if (measured[0] == nullptr && measured[1] == nullptr) {
    clock.measured = false;
    clock.error_ns = clock.bound_ns = wall_clock_error_ns;
    clock.shift_ns = static_cast<double>(header.begin_unix_ns) - static_cast<double>(base_unix_ns);
    return clock;
  }
  const std::int32_t reference = (measured[0] != nullptr ? measured[0] : measured[1])->reference;
  const auto its_clock = others.find(reference);
  // By way of the reference, whose rate is then known as well. Without it, by what was summed up during the run.
  const bool by_reference = its_clock != others.end() && its_clock->second.measured;
  std::optional<Comparison> comparisons[2];
  for (int i = 0; i < 2; ++i) {
    if (measured[i] == nullptr || (by_reference && measured[i]->reference != reference)) continue;
    const trace::ClockOffset& offset = *measured[i];
    const double at_ns = clock.node_ns(offset.at_ticks);
    const auto bound_ns = static_cast<double>(offset.bound_ns);
    comparisons[i] = by_reference ? Comparison{static_cast<double>(offset.to_reference_ns),
                                               static_cast<double>(offset.reference_error_ns), bound_ns, at_ns}
                                  : Comparison{static_cast<double>(offset.offset_ns),
                                               static_cast<double>(offset.error_ns), bound_ns, at_ns};
  }
  fit(clock, comparisons[0], comparisons[1]);
  if (by_reference) {
    const NodeClock& its = its_clock->second;
    clock.shift_ns = its.shift_ns + its.scale * clock.shift_ns;
    clock.compared_ns = its.shift_ns + its.scale * clock.compared_ns;
    clock.scale *= its.scale;
    clock.error_ns += its.error_ns;
    clock.measured_twice = clock.measured_twice && its.measured_twice;
  }
  return clock;
}

}  // namespace

Clocks::Clocks(const Run& run) {
  std::map<std::int32_t, std::vector<const RankFile*>> by_node;
  for (const RankFile& file : run.files) by_node[file.header.node].push_back(&file);
  if (by_node.empty()) return;
  // Of node 0, or of the lowest node there is a record of.
  base_unix_ns_ = by_node.begin()->second.front()->header.begin_unix_ns;
  std::map<std::int32_t, NodeClock> clocks;
  std::map<std::int32_t, std::size_t> index;
  for (const auto& [node, files] : by_node) {
    const NodeClock clock = node_clock(files, clocks, base_unix_ns_);
    clocks.emplace(node, clock);
    index[node] = clocks_.size();
    clocks_.push_back(clock);
  }
  for (const RankFile& file : run.files) index_.push_back(index[file.header.node]);
}

}  // namespace papaya::report
