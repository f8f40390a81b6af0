// Random arrivals, ranks ahead of each other, and who waits for whom.
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

TEST_CASE("random arrivals, odd rank counts, all sizes, ranks ahead of each other", "[protocol]") {
  for_each_algorithm(
      collectives_but_allreduce, [](Collective collective, const Descriptor& descriptor, bool arrival_order) {
        for (const int ranks : {1, 2, 3, 5, 7, 8})
          for (const wait::Mode mode : {wait::Mode::automatic, wait::Mode::yield}) {
            // With a sanitizer each number of ranks waits in one of the two ways.
            if (thorough == 1 && (ranks % 3 == 2) != (mode == wait::Mode::yield)) continue;
            Node node(descriptor, ranks, mode, {.arrival_order = arrival_order});
            const Reduction reduction = reduction_for(arrival_order, true);
            const auto p = static_cast<std::size_t>(ranks);
            std::vector<std::size_t> counts = {1, p - 1, p, p + 1, 2, 7, 63, 1021, capacity / sizeof(Matrix)};
            if (descriptor.max_bytes > capacity) counts.push_back(4 * capacity / sizeof(Matrix) + 77);
            std::atomic<int> wrong{0};
            on_ranks(ranks, [&](int rank) {
              std::mt19937 random(static_cast<unsigned>(rank) * 977 + static_cast<unsigned>(ranks));
              wait::Site site;
              int number = 0;
              for (int round = 0; round < 1 + thorough; ++round)
                for (const std::size_t count : counts) {
                  if (count == 0) continue;
                  // Short calls in a row: roots and depositors run ahead as far as the banks go.
                  for (int repeat = 0; repeat < (count < 64 ? 12 : 1); ++repeat, ++number) {
                    Call call(collective, reduction, rank, ranks, number, count, number % 3 == 0);
                    if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
                    node.rank(rank).run(call.operands(), site);
                    if (!call.is_right()) ++wrong;
                  }
                }
            });
            CHECK(wrong == 0);
          }
      });
}

TEST_CASE("a late rank is overtaken by as many calls as there are banks, and finds every one", "[protocol]") {
  // The root of a bcast and the non-roots of a reduce leave before the others come.
  constexpr Collective early_leavers[] = {Collective::bcast, Collective::reduce};
  for_each_algorithm(early_leavers, [](Collective collective, const Descriptor& descriptor, bool arrival_order) {
    constexpr int ranks = 3;
    // One round with the flag, one in a slot, many; between nodes two chunks.
    constexpr std::size_t many = 2 * static_cast<std::size_t>(usual_chunk_bytes);
    for (const std::size_t count : {std::size_t{2}, std::size_t{300}, many / sizeof(Matrix)}) {
      if (count * sizeof(Matrix) > descriptor.max_bytes) continue;
      Node node(descriptor, ranks, wait::Mode::block, {.arrival_order = arrival_order});
      const Reduction reduction = reduction_for(arrival_order, true);
      const bool is_bcast = collective == Collective::bcast;
      // The one that the others can do without, and one that waits for nothing but a free bank.
      const int late = is_bcast ? 2 : 0;
      const int fast = is_bcast ? 0 : 1;
      std::atomic<int> ahead{0};
      std::atomic<int> wrong{0};
      on_ranks(ranks, [&](int rank) {
        wait::Site site;
        for (int i = 0; i < 100; ++i) {
          if (rank == late && i == 0)
            while (ahead.load() < 2 || node.policy(fast).sleeps() == 0) std::this_thread::yield();
          const int number = i * ranks;  // always rank 0's
          Call call(collective, reduction, rank, ranks, number, count, false);
          node.rank(rank).run(call.operands(), site);
          if (!call.is_right()) ++wrong;
          if (rank == fast) ahead.store(i + 1);
        }
      });
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("a rank stands still after its deposit while the others are in the next call", "[protocol]") {
  constexpr Collective chosen[] = {Collective::barrier, Collective::allgather, Collective::allgatherv,
                                   Collective::alltoall, Collective::allreduce};
  for_each_algorithm(chosen, [](Collective collective, const Descriptor& descriptor, bool arrival_order) {
    if (descriptor.segment != nullptr) return;  // what goes from rank to rank needs each of them again
    for (const int ranks : {2, 3, 5})
      for (const auto& values : parameter_sets(descriptor)) {
        constexpr int calls = 60;
        Node node(descriptor, ranks, wait::Mode::automatic, {.arrival_order = arrival_order, .values = values});
        const Reduction reduction = reduction_for(arrival_order, true);
        std::vector<std::atomic<int>> deposits(calls);
        std::atomic<int> wrong{0};
        on_ranks(ranks, [&](int rank) {
          wait::Site site;
          for (int number = 0; number < calls; ++number) {
            const std::size_t count = number % 3 == 0 ? 300 : 2;
            Call call(collective, reduction, rank, ranks, number, count, number % 2 == 0);
            auto deposited = [&] {
              ++deposits[static_cast<std::size_t>(number)];
              if (number % ranks != rank || number + 1 == calls) return;
              while (deposits[static_cast<std::size_t>(number) + 1].load() < ranks - 1) std::this_thread::yield();
            };
            call.operands().deposited = [](void* context) { (*static_cast<decltype(deposited)*>(context))(); };
            call.operands().context = &deposited;
            node.rank(rank).run(call.operands(), site);
            if (!call.is_right()) ++wrong;
          }
        });
        CHECK(wrong == 0);
      }
  });
}

TEST_CASE("a root that has used up the banks knows whom it waits for", "[protocol]") {
  const int ranks = 3;
  for (const Descriptor* descriptor : algorithms_for(Collective::bcast, false)) {
    if (!descriptor->one_node) continue;  // over the wire a rank knows only whom it waits for itself
    static std::atomic<int> reports;
    reports = 0;
    Node node(*descriptor, ranks, wait::Mode::block);
    for (int rank = 0; rank < ranks; ++rank)
      node.policy(rank).set_stall(0.2, [](void* prepared, double) {
        const auto* waiting = static_cast<const Prepared*>(prepared);
        // Not yet where the system held rank 0 or 1 up: it asks again.
        if (waiting->is_missing(0) || waiting->is_missing(1) || !waiting->is_missing(2)) return false;
        ++reports;
        return true;
      });
    const Reduction reduction = reduction_for(true, true);
    std::atomic<int> wrong{0};
    on_ranks(ranks, [&](int rank) {
      wait::Site site;
      const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (rank == 2 && reports.load() < 2 && std::chrono::steady_clock::now() < give_up)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      // A message of more rounds than there are banks; the root is rank 0.
      Call call(Collective::bcast, reduction, rank, ranks, 0, 40 * capacity / sizeof(Matrix), false);
      node.rank(rank).run(call.operands(), site);
      if (!call.is_right()) ++wrong;
    });
    CHECK(wrong == 0);
    CHECK(reports >= 2);
  }
}

TEST_CASE("no receiver of a bcast waits for another receiver that is late", "[protocol]") {
  const int ranks = 4;
  for (const Descriptor* descriptor : algorithms_for(Collective::bcast, false))
    for (int late = 1; late < ranks && descriptor->one_node; ++late) {  // over the wire some pass it on to others
      std::vector<std::int64_t> values = default_values(*descriptor);
      for (std::size_t i = 0; i < values.size(); ++i)
        if (descriptor->parameters[i].name == "radix") values[i] = 1;  // a chain: everybody is somebody's parent
      Node node(*descriptor, ranks, wait::Mode::automatic, {.values = values});
      const Reduction reduction = reduction_for(true, true);
      std::atomic<int> done{0};
      std::atomic<int> wrong{0};
      on_ranks(ranks, [&](int rank) {
        wait::Site site;
        Call call(Collective::bcast, reduction, rank, ranks, 0, 1021, false);
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (rank == late && done.load() < ranks - 1 && std::chrono::steady_clock::now() < give_up)
          std::this_thread::yield();
        if (rank == late && done.load() < ranks - 1) ++wrong;
        node.rank(rank).run(call.operands(), site);
        done.fetch_add(1);
        if (!call.is_right()) ++wrong;
      });
      CHECK(wrong == 0);
    }
}

TEST_CASE("no rank leaves a barrier before all have come", "[protocol]") {
  for (const Descriptor* descriptor : algorithms_for(Collective::barrier, false))
    for (const int ranks : {2, 3, 7}) {
      Node node(*descriptor, ranks, wait::Mode::automatic);
      std::atomic<int> entered{0};
      std::atomic<int> wrong{0};
      on_ranks(ranks, [&](int rank) {
        wait::Site site;
        std::mt19937 random(static_cast<unsigned>(rank));
        const Reduction none;
        for (int i = 1; i <= 300; ++i) {
          if (random() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
          entered.fetch_add(1);
          const Operands operands{
              .send = nullptr, .receive = nullptr, .count = 0, .bytes = 0, .root = -1, .reduction = &none};
          node.rank(rank).run(operands, site);
          if (entered.load() < i * ranks) ++wrong;
        }
      });
      CHECK(wrong == 0);
    }
}

}  // namespace papaya
