// What the machine offers the ranks of a node.
#pragma once

#include <cstdint>

namespace papaya::topology {

// Which cores this process may run on, as a set of at most 4096 logical core numbers.
struct CoreSet {
  static constexpr int capacity = 4096;
  std::uint64_t words[capacity / 64];
};

// Cores (not hardware threads: two of them share one core's units) by hwloc, cut to this process's affinity and to
// its control group's limit. Falls back to logical processors where hwloc cannot tell.
CoreSet allowed_cores() noexcept;

int count(const CoreSet& cores) noexcept;

}  // namespace papaya::topology
