// The allreduce with one late rank, with threads as ranks.
#include "algorithms/straggler.hpp"

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "algorithms/kernels/reduce.hpp"
#include "tests/catch.hpp"
#include "tests/protocol/call.hpp"
#include "tests/protocol/node.hpp"

namespace papaya {

namespace {

const Descriptor& algorithm() {
  return *find_algorithm(Collective::allreduce, "straggler_rsa");
}
int straggler(Node& node, int rank) {
  return static_cast<Straggler&>(node.rank(rank)).straggler();
}
bool all_agree(Node& node) {
  for (int rank = 1; rank < node.size(); ++rank)
    if (straggler(node, rank) != straggler(node, 0)) return false;
  return true;
}

// Small chunks, so that a call has several.
std::vector<std::int64_t> small_chunks() {
  std::vector<std::int64_t> values = default_values(algorithm());
  values[0] = 4096;
  return values;
}

}  // namespace

TEST_CASE("the rank that is late becomes the straggler on all ranks, and another after it", "[protocol]") {
  for (const int ranks : {2, 3, 5, 8}) {
    INFO(ranks << " ranks");
    Node node(algorithm(), ranks, wait::Mode::block, {.values = small_chunks()});
    const Reduction reduction = reduction_for(true, true);
    constexpr std::size_t counts[] = {1, 700, 3, 2000};
    std::vector<wait::Site> sites(static_cast<std::size_t>(ranks));
    int number = 0;
    for (const int late : {0, ranks - 1, 1 % ranks}) {
      bool found = false;
      for (int calls = 0; calls < 60 && !found; ++calls, ++number) {
        std::atomic<int> wrong{0};
        std::atomic<int> come{0};
        on_ranks(ranks, [&](int rank) {
          Call call(Collective::allreduce, reduction, rank, ranks, number, counts[number % std::size(counts)],
                    number % 3 == 0);
          // After the others, however long the system lets them wait for a core.
          if (rank == late) {
            while (come < ranks - 1) std::this_thread::yield();
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
          }
          ++come;
          node.rank(rank).run(call.operands(), sites[static_cast<std::size_t>(rank)]);
          if (!call.is_right()) ++wrong;
        });
        REQUIRE(wrong == 0);
        REQUIRE(all_agree(node));
        found = straggler(node, 0) == late;
      }
      CHECK(found);
    }
  }
}

TEST_CASE("calls of all sizes with ranks ahead of each other, while the straggler changes", "[protocol]") {
  for (const int ranks : {2, 3, 4, 5, 7, 8})
    for (const wait::Mode mode : {wait::Mode::automatic, wait::Mode::block}) {
      INFO(ranks << " ranks");
      Node node(algorithm(), ranks, mode, {.values = small_chunks()});
      const Reduction reduction = reduction_for(true, true);
      constexpr std::size_t counts[] = {1, 2, 64, 65, 700, 5000, 3, 0, 1, 9000, 31};
      std::atomic<int> wrong{0};
      on_ranks(ranks, [&](int rank) {
        wait::Site site;
        for (int number = 0; number < 60 * thorough; ++number) {
          if (number / 8 % ranks == rank) std::this_thread::sleep_for(std::chrono::microseconds(500));
          Call call(Collective::allreduce, reduction, rank, ranks, number, counts[number % std::size(counts)],
                    number % 3 == 0);
          node.rank(rank).run(call.operands(), site);
          if (!call.is_right()) ++wrong;
        }
      });
      CHECK(wrong == 0);
      CHECK(all_agree(node));
    }
}

TEST_CASE("the same bits on all ranks and in every run, whoever is late", "[protocol]") {
  for (const int ranks : {2, 3, 6, 8}) {
    INFO(ranks << " ranks");
    constexpr std::size_t count = 1500;
    const Reduction reduction{.element_bytes = sizeof(double),
                              .by_table = true,
                              .combine = kernels::find(kernels::ElementType::f64, kernels::Operation::sum)};
    std::vector<double> first;
    for (int late = 0; late < ranks; ++late) {
      std::vector<std::int64_t> values = small_chunks();
      values[2] = late;
      Node node(algorithm(), ranks, wait::Mode::automatic, {.values = values});
      std::vector<std::vector<double>> results(static_cast<std::size_t>(ranks), std::vector<double>(count));
      on_ranks(ranks, [&](int rank) {
        std::vector<double>& result = results[static_cast<std::size_t>(rank)];
        std::vector<double> operand(count);
        for (std::size_t i = 0; i < count; ++i) operand[i] = 1.0 / static_cast<double>(rank * 7919 + 3 * i + 1);
        wait::Site site;
        Operands operands{};
        operands.send = operand.data();
        operands.receive = result.data();
        operands.count = count;
        operands.bytes = count * sizeof(double);
        operands.root = -1;
        operands.reduction = &reduction;
        node.rank(rank).run(operands, site);
      });
      CHECK(straggler(node, 0) == late);
      if (late == 0) first = results[0];
      for (const std::vector<double>& result : results)
        CHECK(std::memcmp(result.data(), first.data(), count * sizeof(double)) == 0);
    }
  }
}

}  // namespace papaya
