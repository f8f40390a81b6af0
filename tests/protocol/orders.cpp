// Every order of arrival, forced, for every algorithm of the registry; round numbers that wrap around.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <thread>

#include "algorithms/algorithm.hpp"
#include "tests/catch.hpp"
#include "tests/protocol/call.hpp"
#include "tests/protocol/every.hpp"
#include "tests/protocol/node.hpp"

namespace papaya {

TEST_CASE("every arrival order of few ranks, every root", "[protocol]") {
  for_each_algorithm(collectives_but_allreduce,
                     [](Collective collective, const Descriptor& descriptor, bool arrival_order) {
                       for (const int ranks : {2, 3, 4})
                         for (const wait::Mode mode : {wait::Mode::block, wait::Mode::spin})
                           for (const bool by_table : {true, false}) {
                             if (!by_table && collective != Collective::reduce) continue;
                             Node node(descriptor, ranks, mode, {.arrival_order = arrival_order});
                             CHECK(every_order(node, collective, reduction_for(arrival_order, by_table), mode) == 0);
                           }
                     });
}

TEST_CASE("round numbers pass 2^31 and 2^32, where events wrap around", "[protocol]") {
  constexpr Collective all[] = {
      Collective::barrier,  Collective::bcast,          Collective::allgather,           Collective::allgatherv,
      Collective::alltoall, Collective::reduce,         Collective::allreduce,           Collective::gather,
      Collective::scatter,  Collective::reduce_scatter, Collective::reduce_scatter_block};
  for_each_algorithm(all, [](Collective collective, const Descriptor& descriptor, bool arrival_order) {
    constexpr int ranks = 3;
    for (const std::uint64_t limit : {std::uint64_t{1} << 31, std::uint64_t{1} << 32}) {
      // The doorbells stand at 0 as if nobody had slept in all the rounds before. Single rounds, each with sleepers;
      // then calls of several rounds, with ranks that run ahead.
      constexpr int rounds = 140;
      const Reduction reduction = reduction_for(arrival_order, true);
      {
        Node node(descriptor, ranks, wait::Mode::block,
                  {.arrival_order = arrival_order, .first_round = limit - rounds});
        int wrong = 0;
        for (int calls = 0; calls < rounds + 20; calls += 18)
          wrong += every_order(node, collective, reduction, wait::Mode::block);
        CHECK(wrong == 0);
      }
      Node node(descriptor, ranks, wait::Mode::block, {.arrival_order = arrival_order, .first_round = limit - rounds});
      const std::size_t large = descriptor.max_bytes > capacity ? 4 * capacity / sizeof(Matrix) + 77 : 300;
      std::atomic<int> wrong{0};
      on_ranks(ranks, [&](int rank) {
        wait::Site site;
        std::mt19937 random(static_cast<unsigned>(rank));
        for (int number = 0; number < rounds + 20; ++number) {
          const std::size_t count = number % (12 / thorough) == 0 ? large : 2;
          Call call(collective, reduction, rank, ranks, number, count, number % 2 == 0);
          if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
          node.rank(rank).run(call.operands(), site);
          if (!call.is_right()) ++wrong;
        }
      });
      CHECK(wrong == 0);
    }
  });
}

}  // namespace papaya
