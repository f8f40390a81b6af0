// Ranks on a ring in the order in which they are expected to arrive: who passes what to whom, and how the
// expectation comes about. Free of memory and communication.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <tuple>
#include <vector>

namespace papaya::patterns {

// ---- what goes over a link of the ring

// A block on its way from one position to the next: as a partial result or as the result.
struct Pass {
  int block;
  bool is_result;
  int brought_by;  // the pass over the link before that brings it; -1: it begins here, as the rank's operand
};

// The position where a block's way begins. It is reduced along p positions and so ends one position before
// that, from where the result goes on along p - 1 more. In a plain ring of p blocks block c begins at c. Each
// of `pre_steps` moves the beginnings of all blocks one towards position 0, where they stay: what came first
// reduces more by itself, before what comes last is needed. One block begins at 0.
constexpr int block_begins_at(int block, int pre_steps) noexcept {
  return std::max(block - pre_steps, 0);
}

// The passes over the link from `position` to the next one, in the order in which both ends take them.
//
// A pass is known by when it would happen if each took the same time: a block that begins at position 0 later
// than it would elsewhere waits for those before it. Along a block's way that time grows, so both ends can
// always do the earliest pass that is left, and the order cannot lead to a deadlock. Of passes at one time
// those of the block that has the longest way before it go first.
inline std::vector<Pass> link_passes(int ranks, int blocks, int pre_steps, int position) {
  const auto step_at = [&](int block, int at) { return (at - block_begins_at(block, pre_steps) + ranks) % ranks; };
  const auto sorted = [&](int at) {
    struct Timed {
      int time;
      Pass pass;
    };
    std::vector<Timed> timed;
    for (int block = 0; block < blocks; ++block) {
      const int step = step_at(block, at);
      const int waits = std::min(block, pre_steps);
      if (step <= ranks - 2) timed.push_back({waits + step, {block, false, -1}});
      if (step == ranks - 1) timed.push_back({waits + step, {block, true, -1}});
      if (step <= ranks - 3) timed.push_back({waits + step + ranks, {block, true, -1}});
    }
    std::sort(timed.begin(), timed.end(), [](const Timed& a, const Timed& b) {
      return std::tuple(a.time, -a.pass.block) < std::tuple(b.time, -b.pass.block);
    });
    std::vector<Pass> passes;
    for (const Timed& t : timed) passes.push_back(t.pass);
    return passes;
  };
  std::vector<Pass> passes = sorted(position);
  const std::vector<Pass> before = sorted((position + ranks - 1) % ranks);
  std::vector<int> partial(static_cast<std::size_t>(blocks), -1);
  std::vector<int> result(static_cast<std::size_t>(blocks), -1);
  for (std::size_t i = 0; i < before.size(); ++i)
    (before[i].is_result ? result : partial)[static_cast<std::size_t>(before[i].block)] = static_cast<int>(i);
  for (Pass& pass : passes) {
    const int step = step_at(pass.block, position);
    const auto block = static_cast<std::size_t>(pass.block);
    if (step == 0 && !pass.is_result) continue;
    pass.brought_by = pass.is_result && step != ranks - 1 ? result[block] : partial[block];
  }
  return passes;
}

// ---- who is expected when

// What all ranks know of the arrivals, in nanoseconds: how long a message takes from one rank to the next,
// and for each rank how much later than the first it is expected. `hop_ns` 0: nothing is known.
struct Arrivals {
  std::uint32_t hop_ns = 0;
  std::vector<std::uint32_t> late_ns;
};

// The same with what was measured in a call in which the ranks stood as `order` says: how long each was
// inside until it had the result of block 0, which ends at the last position. No clock is common to the
// ranks, and none is needed: a rank that was inside for longer came earlier, but for the way of the result,
// which takes one hop to position 0, two to position 1 and so on, and none to the last.
//
// A hop: the rank that came last of all waited only as long as its own operand and the result took, p hops
// together, unless it was at the last position. So no hop takes longer than the shortest wait divided by p,
// and the shortest in many calls is right. A slowly growing one follows a network that has become slower.
//
// Arrivals vary: of what is new a quarter counts.
inline void learn_arrivals(Arrivals& arrivals, std::span<const int> order, std::span<const std::uint32_t> waited_ns) {
  const auto ranks = static_cast<std::int64_t>(order.size());
  if (ranks < 2 || std::find(waited_ns.begin(), waited_ns.end(), 0u) != waited_ns.end()) return;
  const auto wait_at = [&](std::int64_t position) {
    return static_cast<std::int64_t>(waited_ns[static_cast<std::size_t>(order[static_cast<std::size_t>(position)])]);
  };
  const bool is_first = arrivals.hop_ns == 0;
  std::int64_t hop = wait_at(0);
  for (std::int64_t i = 1; i < ranks - 1; ++i) hop = std::min(hop, wait_at(i));
  hop = std::max<std::int64_t>(hop / ranks, 1);
  if (!is_first) hop = std::min<std::int64_t>(hop, std::int64_t{arrivals.hop_ns} + arrivals.hop_ns / 16 + 1);
  const auto before_end = [&](std::int64_t position) { return wait_at(position) - (position + 1) % ranks * hop; };
  std::int64_t first = before_end(0);
  for (std::int64_t i = 1; i < ranks; ++i) first = std::max(first, before_end(i));
  for (std::int64_t i = 0; i < ranks; ++i) {
    std::uint32_t& late = arrivals.late_ns[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])];
    const std::int64_t now = std::min<std::int64_t>(first - before_end(i), std::numeric_limits<std::uint32_t>::max());
    late = static_cast<std::uint32_t>(is_first ? now : late + (now - late) / 4);
  }
  arrivals.hop_ns = static_cast<std::uint32_t>(hop);
}

// Puts those first who are expected first. As it is where nobody stands before one who is expected earlier by
// more than a hop: that costs less than a change of neighbours. True if it has changed.
inline bool sort_by_arrival(std::vector<int>& order, const Arrivals& arrivals) {
  const auto late = [&](int rank) { return arrivals.late_ns[static_cast<std::size_t>(rank)]; };
  std::uint32_t latest = 0;
  bool is_sorted = true;
  for (const int rank : order) {
    is_sorted = is_sorted && latest <= std::uint64_t{late(rank)} + arrivals.hop_ns;
    latest = std::max(latest, late(rank));
  }
  if (is_sorted) return false;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return late(a) < late(b); });
  return true;
}

// How many steps, each of so many hops, those who come first can take before the last one comes: the half
// that comes first, since what a single rank could do before is done while the others come.
inline int pre_steps(std::span<const int> order, const Arrivals& arrivals, std::uint64_t hops_a_step) {
  const std::size_t last = order.size() - 1;
  const auto late_at = [&](std::size_t position) {
    return arrivals.late_ns[static_cast<std::size_t>(order[position])];
  };
  const std::uint32_t half = late_at(last / 2);
  const std::uint32_t all = std::max(half, late_at(last));
  if (arrivals.hop_ns == 0) return 0;
  return static_cast<int>(std::min<std::uint64_t>(last, (all - half) / (arrivals.hop_ns * hops_a_step)));
}

}  // namespace papaya::patterns
