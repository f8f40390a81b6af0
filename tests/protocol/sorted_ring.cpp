// The order of arrivals on the ring, with threads as ranks that are late.
#include "algorithms/sorted_ring.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "tests/catch.hpp"
#include "tests/protocol/call.hpp"
#include "tests/protocol/node.hpp"

namespace papaya {

namespace {

std::vector<const Descriptor*> sorted_rings() {
  return {find_algorithm(Collective::allreduce, "sorted_tree"),
          find_algorithm(Collective::allreduce, "pre_reduced_ring")};
}

SortedRing& ring(Node& node, int rank) {
  return static_cast<SortedRing&>(node.rank(rank));
}

bool all_agree(Node& node) {
  for (int rank = 1; rank < node.size(); ++rank) {
    const SortedRing& one = ring(node, rank);
    const SortedRing& first = ring(node, 0);
    if (!std::equal(one.order().begin(), one.order().end(), first.order().begin())) return false;
    if (one.arrivals().late_ns != first.arrivals().late_ns || one.arrivals().hop_ns != first.arrivals().hop_ns)
      return false;
    if (one.pre_steps() != first.pre_steps()) return false;
  }
  return true;
}

// Calls in which one rank comes after the others, by 8 ms at first and by up to 128 ms on a machine whose hops are so
// slow that it takes that; `done` is asked after each.
template <class Done>
bool late_until(Node& node, int late, std::size_t count, const Done& done) {
  const Reduction reduction = reduction_for(true, true);
  std::vector<wait::Site> sites(static_cast<std::size_t>(node.size()));
  for (int number = 0; number < 100; ++number) {
    const std::chrono::milliseconds by{8 << number / 20};
    std::atomic<int> wrong{0};
    on_ranks(node.size(), [&](int rank) {
      Call call(Collective::allreduce, reduction, rank, node.size(), number, count, number % 2 == 0);
      if (rank == late) std::this_thread::sleep_for(by);
      node.rank(rank).run(call.operands(), sites[static_cast<std::size_t>(rank)]);
      if (!call.is_right()) ++wrong;
    });
    CHECK(wrong == 0);
    CHECK(all_agree(node));
    if (done()) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("who is late goes to the end of the ring, on all ranks, and another after it", "[protocol]") {
  for (const Descriptor* descriptor : sorted_rings())
    for (const std::size_t count : {std::size_t{2}, 3 * capacity / sizeof(Matrix)}) {
      INFO(descriptor->name << " of " << count);
      Node node(*descriptor, 4, wait::Mode::block, {.arrival_order = true});
      for (const int late : {1, 3, 0}) {
        CHECK(late_until(node, late, count, [&] { return ring(node, 0).order().back() == late; }));
        // The one block of the tree begins at the first rank as it is.
        if (descriptor->name == "pre_reduced_ring")
          CHECK(late_until(node, late, count, [&] { return ring(node, 0).pre_steps() == 3; }));
        else
          CHECK(ring(node, 0).pre_steps() == 0);
      }
    }
}

TEST_CASE("neighbours that change from call to call, all sizes, ranks ahead of each other", "[protocol]") {
  for (const Descriptor* descriptor : sorted_rings())
    for (const int ranks : {2, 3, 5, 8})
      for (const wait::Mode mode : {wait::Mode::automatic, wait::Mode::block}) {
        INFO(descriptor->name << ", " << ranks << " ranks");
        // Small chunks, so that a call needs the slots several times.
        std::vector<std::int64_t> values = default_values(*descriptor);
        values[0] = 1024;
        int changes = 0;
        {
          Node node(*descriptor, ranks, mode, {.arrival_order = true, .values = values});
          const Reduction reduction = reduction_for(true, true);
          constexpr std::size_t counts[] = {1, 2, 64, 65, 700, 5000, 3, 0, 1, 9000, 31};
          std::atomic<int> wrong{0};
          on_ranks(ranks, [&](int rank) {
            wait::Site site;
            std::vector<int> before;
            for (int number = 0; number < 80 * thorough; ++number) {
              // One rank is late for some calls, then another.
              if (number / 8 % ranks == rank) std::this_thread::sleep_for(std::chrono::microseconds(700));
              Call call(Collective::allreduce, reduction, rank, ranks, number, counts[number % std::size(counts)],
                        number % 3 == 0);
              node.rank(rank).run(call.operands(), site);
              if (!call.is_right()) ++wrong;
              const auto order = ring(node, rank).order();
              if (rank == 0 && !std::equal(order.begin(), order.end(), before.begin(), before.end())) ++changes;
              before.assign(order.begin(), order.end());
            }
          });
          CHECK(wrong == 0);
          CHECK(all_agree(node));
        }
        CHECK(changes > 2);  // the first is none
      }
}

}  // namespace papaya
