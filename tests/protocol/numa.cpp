// Ranks on several NUMA nodes and caches.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "tests/catch.hpp"
#include "tests/protocol/call.hpp"
#include "tests/protocol/every.hpp"
#include "tests/protocol/node.hpp"

namespace papaya {

TEST_CASE("reductions with a tree for each NUMA node", "[protocol]") {
  // Consecutive ranks, even and uneven; in turn, where what does not commute goes over one tree; one rank
  // that is not bound.
  const std::vector<topology::Location> machines[] = {
      {{0, 0}, {0, 0}, {1, 1}, {1, 1}},
      {{0, 0}, {1, 1}, {0, 0}, {1, 1}},
      {{0, 0}, {0, 0}, {0, 0}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
      {{2, 0}, {0, 1}, {2, 0}, {0, 1}, {1, 2}, {2, 0}, {-1, -1}, {1, 2}}};
  for (const Collective collective : {Collective::allreduce, Collective::reduce})
    for (const bool arrival_order : {false, true})
      for (const Descriptor* descriptor : algorithms_for(collective, arrival_order))
        for (const auto& locations : machines)
          for (const bool commutes : {true, false}) {
            if ((arrival_order && !commutes) || !descriptor->one_node) continue;
            INFO(name_of(collective) << " " << descriptor->name << " order " << arrival_order << " commutes "
                                     << commutes);
            const int ranks = static_cast<int>(locations.size());
            const Reduction reduction = reduction_for(commutes, true);
            const std::vector<std::int64_t> values = numa_trees_always(*descriptor);
            if (ranks == 4)
              for (const wait::Mode mode : {wait::Mode::block, wait::Mode::spin}) {
                Node node(*descriptor, ranks, mode,
                          {.arrival_order = arrival_order, .values = values, .locations = locations});
                CHECK(every_order(node, collective, reduction, mode) == 0);
              }
            Node node(*descriptor, ranks, wait::Mode::automatic,
                      {.arrival_order = arrival_order, .values = values, .locations = locations});
            std::vector<std::size_t> counts = {1, 5, 63, 1021, capacity / sizeof(Matrix)};
            if (descriptor->max_bytes > capacity) counts.push_back(4 * capacity / sizeof(Matrix) + 77);
            std::atomic<int> wrong{0};
            on_ranks(ranks, [&](int rank) {
              std::mt19937 random(static_cast<unsigned>(rank) * 31);
              wait::Site site;
              for (int number = 0; number < 8 * thorough; ++number) {
                const std::size_t count = counts[static_cast<std::size_t>(number) % counts.size()];
                Call call(collective, reduction, rank, ranks, number, count, number % 3 == 0);
                // Now and then one rank cannot take part: then nobody does.
                const bool declined =
                    collective == Collective::allreduce && descriptor->serves_declines && number % 7 == 3;
                call.operands().declines = declined && rank == number % ranks;
                if (random() % 6 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
                const bool done = node.rank(rank).run(call.operands(), site);
                if (done == declined || (done ? !call.is_right() : !call.is_untouched())) ++wrong;
              }
            });
            CHECK(wrong == 0);
          }
}

TEST_CASE("bcast on several NUMA nodes and caches, ancestors late or ahead", "[protocol]") {
  const std::vector<topology::Location> locations = {{0, 0}, {1, 2}, {0, 1}, {1, 3}, {0, 0}, {1, 2}, {-1, -1}};
  const int ranks = static_cast<int>(locations.size());
  for (const Descriptor* descriptor : algorithms_for(Collective::bcast, false))
    for (const std::int64_t value : {1, 2, 64}) {
      std::vector<std::int64_t> values = default_values(*descriptor);
      for (std::size_t i = 0; i < values.size(); ++i)
        if (descriptor->parameters[i].name == "radix") values[i] = value;
      Node node(*descriptor, ranks, wait::Mode::automatic, {.values = values, .locations = locations});
      const Reduction reduction = reduction_for(true, true);
      std::atomic<int> wrong{0};
      on_ranks(ranks, [&](int rank) {
        std::mt19937 random(static_cast<unsigned>(rank) + 31);
        wait::Site site;
        for (int number = 0; number < 60; ++number) {
          const std::size_t count = number % 6 == 5 ? 3 * capacity / sizeof(Matrix) + 5 : number % 2 == 0 ? 3 : 1021;
          Call call(Collective::bcast, reduction, rank, ranks, number / 2, count, false);
          if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
          node.rank(rank).run(call.operands(), site);
          if (!call.is_right()) ++wrong;
        }
      });
      CHECK(wrong == 0);
    }
}

}  // namespace papaya
