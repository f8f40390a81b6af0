// Ranks as threads that publish and compare arrivals at once. Built under ThreadSanitizer too.
#include <barrier>
#include <thread>

#include "tests/catch.hpp"
#include "tests/unit/support/node.hpp"

namespace papaya {

TEST_CASE("node arrivals: what is read while it is written is of one call or of none", "[protocol]") {
  constexpr int ranks = 4;
  constexpr std::uint64_t calls = 20000;
  constexpr std::uint64_t communicators[] = {1, 2};
  for (const bool in_step : {true, false}) {
    INFO((in_step ? "in step" : "as they please"));
    support::ArrivalNode node(ranks, 64);
    std::barrier<> together(ranks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        NodeArrivals::Group groups[] = {node.group(communicators[0], rank), node.group(communicators[1], rank)};
        for (std::uint64_t call = 0; call < calls; ++call)
          for (int c = 0; c < 2; ++c) {
            // The last is always rank 3, and 3 * 3 + 2 + 1 ticks are waited for it.
            node[rank].arrivals.publish(groups[c], call, 1000 * call + static_cast<std::uint64_t>(rank * rank),
                                        static_cast<std::uint64_t>(rank) + 1, Collective::allreduce, 8, -1);
            if (in_step) together.arrive_and_wait();
            node[rank].arrivals.left(groups[c], call);
          }
      });
    for (std::thread& thread : threads) thread.join();
    const std::uint64_t compared = node.sum([](const auto& row) { return row.calls; });
    CHECK(node.sum([](const auto& row) { return row.imbalance_ticks; }) == 9 * compared);
    CHECK(node.sum([](const auto& row) { return row.caused_ticks; }) == (9 + 8 + 5) * compared);
    CHECK(node.sum([](const auto& row) -> std::uint64_t { return row.rank != 3 || row.call_site != 4; }) == 0);
    CHECK(compared + node.given_up() <= 2 * calls);
    if (in_step) CHECK(compared >= 2 * calls - 16);
  }
}

}  // namespace papaya
