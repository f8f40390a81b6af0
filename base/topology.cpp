#include "base/topology.hpp"

#include <hwloc.h>
#include <sched.h>

#include <bit>

namespace papaya::topology {

namespace {

void insert(CoreSet& cores, unsigned core) noexcept {
  if (core < CoreSet::capacity) cores.words[core / 64] |= std::uint64_t{1} << (core % 64);
}

CoreSet logical_processors() noexcept {
  CoreSet cores{};
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    insert(cores, 0);
    return cores;
  }
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) insert(cores, cpu);
  return cores;
}

}  // namespace

CoreSet allowed_cores() noexcept {
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) != 0) return logical_processors();
  // Only cores and processing units: loading caches, memory and devices would cost milliseconds in every rank.
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  CoreSet cores{};
  int found = 0;
  if (hwloc_topology_load(topology) == 0) {
    hwloc_bitmap_t bound = hwloc_bitmap_alloc();
    if (hwloc_get_cpubind(topology, bound, HWLOC_CPUBIND_PROCESS) == 0) {
      for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core));)
        if (hwloc_bitmap_intersects(core->cpuset, bound)) {
          insert(cores, core->logical_index);
          ++found;
        }
    }
    hwloc_bitmap_free(bound);
  }
  hwloc_topology_destroy(topology);
  return found > 0 ? cores : logical_processors();
}

int count(const CoreSet& cores) noexcept {
  int total = 0;
  for (const std::uint64_t word : cores.words) total += std::popcount(word);
  return total;
}

}  // namespace papaya::topology
