// hierarchical_allgather and hierarchical_alltoall, with threads as ranks of several nodes.
#include "algorithms/leaders_exchange.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tests/catch.hpp"
#include "tests/protocol/call.hpp"
#include "tests/protocol/node.hpp"

namespace papaya {

namespace {

constexpr int layouts = 5;  // of some_nodes()

const Descriptor& algorithm(Collective collective) {
  return *find_algorithm(collective,
                         collective == Collective::alltoall ? "hierarchical_alltoall" : "hierarchical_allgather");
}

// Small chunks, so that a call has several fragments, and a message several pieces.
std::vector<std::int64_t> values_with(std::int64_t leaders) {
  return {4096, leaders};
}

}  // namespace

TEST_CASE("blocks of one to many fragments on nodes of all sizes, with as many leaders as they have", "[protocol]") {
  const Reduction reduction = reduction_for(true, true);
  for (const Collective collective : {Collective::allgather, Collective::alltoall})
    for (const int ranks : {3, 5, 8, 13})
      for (const std::int64_t leaders : {0, 1, 3})
        for (int layout = 0; layout < layouts; ++layout) {
          Node node(algorithm(collective), ranks, wait::Mode::automatic, false, values_with(leaders));
          INFO(name_of(collective) << ", " << ranks << " ranks on " << node.nodes().count() << " nodes, " << leaders
                                   << " leaders");
          constexpr std::size_t counts[] = {1, 64, 767, 2, 2048, 33};
          std::atomic<int> wrong{0};
          on_ranks(ranks, [&](int rank) {
            wait::Site site;
            for (int number = 0; number < 6 * thorough; ++number) {
              if (number % ranks == rank) std::this_thread::sleep_for(std::chrono::microseconds(200));
              Call call(collective, reduction, rank, ranks, number, counts[number % std::size(counts)],
                        number % 4 == 0);
              node.rank(rank).run(call.operands(), site);
              if (!call.is_right()) ++wrong;
            }
          });
          CHECK(wrong == 0);
        }
}

TEST_CASE("whoever waits long for a late node names its leader and nobody else", "[protocol]") {
  const Reduction reduction = reduction_for(true, true);
  for (const Collective collective : {Collective::allgather, Collective::alltoall}) {
    constexpr int ranks = 5;
    // Each rank on a node of its own.
    std::unique_ptr<Node> node;
    do node = std::make_unique<Node>(algorithm(collective), ranks, wait::Mode::automatic, false, values_with(0));
    while (node->nodes().count() != ranks);
    static std::atomic<int> reports;
    static int late;
    // In the thread that waits. Those that came a little later than it may be missing at first: then it is asked again.
    const auto report = [](void* stalled, double) {
      const auto& prepared = *static_cast<const Prepared*>(stalled);
      for (int rank = 0; rank < ranks; ++rank)
        if (prepared.is_missing(rank) != (rank == late)) return false;
      ++reports;
      return true;
    };
    for (int rank = 0; rank < ranks; ++rank) node->policy(rank).set_stall(0.01, report);
    for (late = 0; late < ranks; ++late) {
      reports = 0;
      std::atomic<int> wrong{0};
      on_ranks(ranks, [&](int rank) {
        wait::Site site;
        Call call(collective, reduction, rank, ranks, late, 40, false);
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (rank == late && reports < ranks - 1 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
        node->rank(rank).run(call.operands(), site);
        if (!call.is_right()) ++wrong;
      });
      INFO(name_of(collective) << ", rank " << late);
      CHECK(wrong == 0);
      CHECK(reports == ranks - 1);
    }
  }
}

}  // namespace papaya
