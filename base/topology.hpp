// What the machine offers the ranks of a node.
#pragma once

#include <cstdint>

namespace papaya::topology {

// Which cores this process may run on, as a set of at most 4096 logical core numbers.
struct CoreSet {
  static constexpr int capacity = 4096;
  std::uint64_t words[capacity / 64];
};

int count(const CoreSet& cores) noexcept;

// Where a process runs: the NUMA node and the last-level cache that all its cores have in common, by hwloc's logical
// numbers; -1 where they have none in common, or nobody can tell.
struct Location {
  int numa = -1;
  int cache = -1;
  bool operator==(const Location&) const = default;
};

// What this process may use.
struct Share {
  CoreSet cores{};
  Location location;
};

// Cores (not hardware threads: two of them share one core's units) by hwloc, cut to this process's affinity and to
// its control group's limit. Falls back to logical processors where hwloc cannot tell.
Share allowed() noexcept;

// The same for processors [first, first + processors) of one of hwloc's synthetic machines ("numa:2 l3:2 core:4
// pu:1", say); nothing if hwloc does not understand it.
Share allowed_in(const char* synthetic, unsigned first, unsigned processors) noexcept;

}  // namespace papaya::topology
