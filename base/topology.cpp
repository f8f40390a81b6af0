#include "base/topology.hpp"

#include <hwloc.h>
#include <sched.h>

#include <bit>
#include <memory>

namespace papaya::topology {

namespace {

void insert(CoreSet& cores, unsigned core) noexcept {
  if (core < CoreSet::capacity) cores.words[core / 64] |= std::uint64_t{1} << (core % 64);
}

// The processors that this process may run on; none if the system cannot say.
CoreSet affinity() noexcept {
  CoreSet processors{};
  if (sched_getaffinity(0, sizeof processors.words, reinterpret_cast<cpu_set_t*>(processors.words)) != 0) return {};
  return processors;
}

bool contains(const CoreSet& set, int number) noexcept {
  return ((set.words[number / 64] >> (number % 64)) & 1) != 0;
}

// Destroys a topology and what was made with it.
class Machine {
 public:
  Machine() noexcept {
    is_there_ = hwloc_topology_init(&topology_) == 0;
    if (!is_there_) return;
    // Ranks may lie in control groups of their own, and each is to find its processors.
    hwloc_topology_set_flags(topology_, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    // Cores, processing units, last-level caches and what NUMA nodes are attached to (they are always there, and would
    // otherwise have all processors): everything else would cost milliseconds in every rank.
    hwloc_topology_set_all_types_filter(topology_, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(topology_, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_type_filter(topology_, HWLOC_OBJ_L3CACHE, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_type_filter(topology_, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_type_filter(topology_, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  }
  ~Machine() {
    if (is_there_) hwloc_topology_destroy(topology_);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  explicit operator bool() const { return is_there_; }
  hwloc_topology_t topology() const { return topology_; }

  // After it is loaded.
  void fill(Map& map) const noexcept {
    note(map, HWLOC_OBJ_CORE, &Processor::core);
    note(map, HWLOC_OBJ_NUMANODE, &Processor::numa);
    note(map, HWLOC_OBJ_L3CACHE, &Processor::cache);
  }

 private:
  // The first object of the type that has a processor is the processor's.
  void note(Map& map, hwloc_obj_type_t type, std::int16_t Processor::*number) const noexcept {
    for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_obj_by_type(topology_, type, object));) {
      if (object->cpuset == nullptr || object->logical_index >= CoreSet::capacity) continue;
      for (int cpu = -1; (cpu = hwloc_bitmap_next(object->cpuset, cpu)) >= 0 && cpu < CoreSet::capacity;)
        if (std::int16_t& known = map.processors[cpu].*number; known < 0)
          known = static_cast<std::int16_t>(object->logical_index);
    }
  }

  hwloc_topology_t topology_ = nullptr;
  bool is_there_ = false;
};

// What a process has that may run on these processors.
Share share_of(const Map& map, const CoreSet& processors) noexcept {
  Share share;
  bool is_first = true;
  for (int cpu = 0; cpu < CoreSet::capacity; ++cpu) {
    const Processor& its = map.processors[cpu];
    if (!contains(processors, cpu) || its.core < 0) continue;
    insert(share.cores, static_cast<unsigned>(its.core));
    if (is_first)
      share.location = {its.numa, its.cache};
    else
      share.location = {share.location.numa == its.numa ? its.numa : -1,
                        share.location.cache == its.cache ? its.cache : -1};
    is_first = false;
  }
  return share;
}

}  // namespace

void make_map(Map& map) noexcept {
  map = {};
  const Machine machine;
  if (machine && hwloc_topology_load(machine.topology()) == 0) machine.fill(map);
}

Share allowed(const Map& map) noexcept {
  CoreSet processors = affinity();
  if (count(processors) == 0) insert(processors, 0);
  const Share share = share_of(map, processors);
  return count(share.cores) > 0 ? share : Share{.cores = processors, .location = {}};
}

Share allowed() {
  const auto map = std::make_unique<Map>();
  make_map(*map);
  return allowed(*map);
}

Share allowed_in(const char* synthetic, unsigned first, unsigned processors) {
  const Machine machine;
  if (!machine || hwloc_topology_set_synthetic(machine.topology(), synthetic) != 0 ||
      hwloc_topology_load(machine.topology()) != 0)
    return {};
  const auto map = std::make_unique<Map>();
  machine.fill(*map);
  CoreSet own{};
  for (unsigned cpu = first; cpu < first + processors; ++cpu) insert(own, cpu);
  return share_of(*map, own);
}

void keep_plugins() noexcept {
  // Never destroyed, but still pointed at, so that it counts as no leak.
  [[gnu::used]] static const hwloc_topology_t kept = [] {
    hwloc_topology_t topology = nullptr;
    return hwloc_topology_init(&topology) == 0 ? topology : nullptr;
  }();
}

int count(const CoreSet& cores) noexcept {
  int total = 0;
  for (const std::uint64_t word : cores.words) total += std::popcount(word);
  return total;
}

}  // namespace papaya::topology
