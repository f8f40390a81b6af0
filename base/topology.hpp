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

// Which core, NUMA node and last-level cache each of the system's processors belongs to, by hwloc's logical numbers;
// -1: none, or not known. It holds for every process of the machine, whatever each may use, and to make it costs
// milliseconds, tens of them on large machines: one rank of a node makes it for all.
struct Processor {
  std::int16_t core = -1;
  std::int16_t numa = -1;
  std::int16_t cache = -1;
};
struct Map {
  Processor processors[CoreSet::capacity];
};
void make_map(Map& map) noexcept;

// Cores (not hardware threads: two of them share one core's units) that this process's affinity allows, which the
// system keeps within its control group's limit. Logical processors where the map has none.
Share allowed(const Map& map) noexcept;
Share allowed();

// The same for processors [first, first + processors) of one of hwloc's synthetic machines ("numa:2 l3:2 core:4
// pu:1", say); nothing if hwloc does not understand it.
Share allowed_in(const char* synthetic, unsigned first, unsigned processors);

// From now on hwloc's plugins, and what they need, stay loaded in this process. They would be unloaded with the last
// topology, which is MPI's where MPI ends and starts again: UCX keeps the names of a library's symbols by the address
// it was loaded at and does not notice that it has gone, so that the next one there crashes UCX's dlopen. Cheap while
// MPI has a topology.
void keep_plugins() noexcept;

}  // namespace papaya::topology
