// Where ranks run, by synthetic machines, and the trees made from it.
#include "base/topology.hpp"

#include <link.h>

#include <set>
#include <string>
#include <vector>

#include "algorithms/patterns/tree.hpp"
#include "tests/catch.hpp"

namespace papaya {

using topology::Location;

namespace {

struct Synthetic {
  const char* description;
  unsigned processors;
};

// Neighbours next to each other, or `stride` processors apart.
std::vector<Location> locations_on(const Synthetic& machine, unsigned ranks, unsigned stride) {
  std::vector<Location> locations;
  for (unsigned rank = 0; rank < ranks; ++rank)
    locations.push_back(topology::allowed_in(machine.description, rank * stride % machine.processors, 1).location);
  return locations;
}

std::set<std::string> loaded_libraries() {
  std::set<std::string> names;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        static_cast<std::set<std::string>*>(found)->insert(info->dlpi_name);
        return 0;
      },
      &names);
  return names;
}

}  // namespace

TEST_CASE("hwloc's plugins stay loaded after the last topology once they are to be kept") {
  const auto plugins_after_a_topology = [] {
    topology::allowed();
    std::set<std::string> plugins;
    for (const std::string& name : loaded_libraries())
      if (name.find("/hwloc/") != std::string::npos) plugins.insert(name);
    return plugins;
  };
  CHECK(plugins_after_a_topology().empty());
  topology::keep_plugins();
  const std::set<std::string> kept = plugins_after_a_topology();
  topology::keep_plugins();
  if (kept.empty()) WARN("this hwloc has no plugins");
  CHECK(plugins_after_a_topology() == kept);
}

TEST_CASE("a process is in the NUMA node and the cache that all its processors share") {
  const char* const machine = "numa:2 l3:2 core:4 pu:2";
  const auto location = [&](unsigned first, unsigned processors) {
    return topology::allowed_in(machine, first, processors).location;
  };
  CHECK(location(0, 1) == Location{0, 0});
  CHECK(location(7, 1) == Location{0, 0});
  CHECK(location(8, 8) == Location{0, 1});
  CHECK(location(16, 1) == Location{1, 2});
  CHECK(location(31, 1) == Location{1, 3});
  CHECK(location(4, 8) == Location{0, -1});
  CHECK(location(8, 16) == Location{-1, -1});
  CHECK(topology::count(topology::allowed_in(machine, 0, 32).cores) == 16);
  CHECK(topology::count(topology::allowed_in(machine, 1, 2).cores) == 2);
  CHECK(topology::allowed_in("numa:1 core:4 pu:1", 0, 1).location == Location{0, -1});
  CHECK(topology::count(topology::allowed_in("what is this", 0, 1).cores) == 0);
}

TEST_CASE("this process may use at least one core") {
  CHECK(topology::count(topology::allowed().cores) > 0);
}

TEST_CASE("a broadcast enters each NUMA node and each cache once") {
  for (const Synthetic machine : {Synthetic{"numa:1 l3:1 core:8 pu:1", 8}, Synthetic{"numa:2 l3:1 core:8 pu:1", 16},
                                  Synthetic{"numa:4 l3:4 core:2 pu:1", 32}, Synthetic{"numa:2 l3:3 core:3 pu:1", 18},
                                  Synthetic{"numa:1 core:5 pu:1", 5}})
    for (const unsigned ranks : {1u, 2u, 3u, 5u, 8u, 16u})
      for (const unsigned stride : {1u, 7u})
        for (const int radix : {1, 2, 4, 64}) {
          const std::vector<Location> locations = locations_on(machine, ranks, stride);
          for (int root = 0; root < static_cast<int>(ranks); ++root) {
            std::vector<int> order(ranks);
            std::vector<int> parents(ranks, -2);
            patterns::broadcast_tree(locations, root, radix, order, parents);
            std::set<int> nodes;
            std::set<std::pair<int, int>> caches;
            int between_nodes = 0;
            int between_caches = 0;
            std::vector<int> children(ranks);
            bool ends_at_root = true;
            for (unsigned rank = 0; rank < ranks; ++rank) {
              nodes.insert(locations[rank].numa);
              caches.insert({locations[rank].numa, locations[rank].cache});
              const int parent = parents[rank];
              if (parent < 0) {
                ends_at_root = ends_at_root && parent == -1 && static_cast<int>(rank) == root;
                continue;
              }
              const auto at = static_cast<std::size_t>(parent);
              between_nodes += locations[rank].numa != locations[at].numa ? 1 : 0;
              between_caches += !(locations[rank] == locations[at]) ? 1 : 0;
              ++children[at];
              int steps = 0;
              int up = static_cast<int>(rank);
              while (up >= 0 && up != root && steps++ < static_cast<int>(ranks))
                up = parents[static_cast<std::size_t>(up)];
              ends_at_root = ends_at_root && up == root;
            }
            INFO(machine.description << " ranks " << ranks << " stride " << stride << " radix " << radix << " root "
                                     << root);
            CHECK(ends_at_root);
            CHECK(between_nodes == static_cast<int>(nodes.size()) - 1);
            CHECK(between_caches == static_cast<int>(caches.size()) - 1);
            for (const int count : children) CHECK(count <= 3 * radix);  // one tree at each of three levels
          }
        }
}

TEST_CASE("ranks by NUMA node, and whether the nodes are subtrees of the reduction tree") {
  const auto group = [](const std::vector<int>& numa) {
    std::vector<Location> locations;
    for (const int node : numa) locations.push_back({node, 0});
    std::vector<int> order(locations.size());
    std::vector<int> ends;
    patterns::group_by_numa(locations, order, ends);
    return std::pair(order, ends);
  };
  using Result = std::pair<std::vector<int>, std::vector<int>>;
  CHECK(group({3}) == Result({0}, {1}));
  CHECK(group({1, 1, 0, 0}) == Result({0, 1, 2, 3}, {2, 4}));
  CHECK(group({0, 1, 0, -1, 1}) == Result({0, 2, 1, 4, 3}, {2, 4, 5}));
  std::vector<int> order(3);
  std::vector<int> ends;
  patterns::group_by_numa({}, order, ends);
  CHECK(ends == std::vector<int>{3});

  const auto are_subtrees = [](const std::vector<int>& groups) { return patterns::are_subtrees(groups); };
  CHECK(are_subtrees({7}));
  CHECK(are_subtrees({4, 8}));
  CHECK(are_subtrees({4, 7}));
  CHECK(are_subtrees({2, 4, 6, 7}));
  CHECK(are_subtrees({1, 2, 3}));
  CHECK_FALSE(are_subtrees({3, 6}));
  CHECK_FALSE(are_subtrees({2, 5}));
  CHECK_FALSE(are_subtrees({4, 6, 10}));

  // A synthetic machine's ranks, one a core: two NUMA nodes of four cores.
  std::vector<Location> locations;
  for (unsigned rank = 0; rank < 7; ++rank)
    locations.push_back(topology::allowed_in("numa:2 l3:1 core:4 pu:1", rank, 1).location);
  order.resize(7);
  patterns::group_by_numa(locations, order, ends);
  CHECK(ends == std::vector<int>{4, 7});
}

TEST_CASE("a broadcast tree without locations is k-ary in rank order from the root") {
  std::vector<int> order(7);
  std::vector<int> parents(7);
  patterns::broadcast_tree({}, 2, 2, order, parents);
  CHECK(parents == std::vector<int>{2, 2, -1, 0, 0, 1, 1});
}

}  // namespace papaya
