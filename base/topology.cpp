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

// Destroys a topology and what was made with it.
class Machine {
 public:
  Machine() noexcept {
    if (hwloc_topology_init(&topology_) != 0) return;
    bound_ = hwloc_bitmap_alloc();
    // Cores, processing units, last-level caches and what NUMA nodes are attached to (they are always there, and would
    // otherwise have all processors): everything else would cost milliseconds in every rank.
    hwloc_topology_set_all_types_filter(topology_, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(topology_, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_type_filter(topology_, HWLOC_OBJ_L3CACHE, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_type_filter(topology_, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_type_filter(topology_, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  }
  ~Machine() {
    if (bound_ == nullptr) return;
    hwloc_bitmap_free(bound_);
    hwloc_topology_destroy(topology_);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  explicit operator bool() const { return bound_ != nullptr; }
  hwloc_topology_t topology() const { return topology_; }
  hwloc_bitmap_t bound() const { return bound_; }

  Share share() const noexcept {
    Share share;
    for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_type(topology_, HWLOC_OBJ_CORE, core));)
      if (hwloc_bitmap_intersects(core->cpuset, bound_)) insert(share.cores, core->logical_index);
    share.location = {common(HWLOC_OBJ_NUMANODE), common(HWLOC_OBJ_L3CACHE)};
    return share;
  }

 private:
  // The object that has all bound processors; -1 if they lie in several.
  int common(hwloc_obj_type_t type) const noexcept {
    for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_obj_by_type(topology_, type, object));)
      if (object->cpuset != nullptr && hwloc_bitmap_isincluded(bound_, object->cpuset))
        return static_cast<int>(object->logical_index);
    return -1;
  }

  hwloc_topology_t topology_ = nullptr;
  hwloc_bitmap_t bound_ = nullptr;
};

}  // namespace

Share allowed() noexcept {
  const Machine machine;
  if (machine && hwloc_topology_load(machine.topology()) == 0 &&
      hwloc_get_cpubind(machine.topology(), machine.bound(), HWLOC_CPUBIND_PROCESS) == 0) {
    // The binding may name processors that the control group forbids.
    hwloc_bitmap_and(machine.bound(), machine.bound(), hwloc_topology_get_allowed_cpuset(machine.topology()));
    const Share share = machine.share();
    if (count(share.cores) > 0) return share;
  }
  return {.cores = logical_processors(), .location = {}};
}

Share allowed_in(const char* synthetic, unsigned first, unsigned processors) noexcept {
  const Machine machine;
  if (!machine || processors == 0 || hwloc_topology_set_synthetic(machine.topology(), synthetic) != 0 ||
      hwloc_topology_load(machine.topology()) != 0)
    return {};
  hwloc_bitmap_set_range(machine.bound(), first, static_cast<int>(first + processors - 1));
  return machine.share();
}

int count(const CoreSet& cores) noexcept {
  int total = 0;
  for (const std::uint64_t word : cores.words) total += std::popcount(word);
  return total;
}

}  // namespace papaya::topology
