// Calls in parts: started, moved on when somebody feels like it, finished with a timeout that may pass. Every
// algorithm of the registry that has a split phase.
#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "algorithms/steps.hpp"
#include "base/clock.hpp"
#include "tests/catch.hpp"
#include "tests/protocol/call.hpp"
#include "tests/protocol/node.hpp"

namespace papaya {

namespace {

std::vector<const Descriptor*> split_phase_algorithms() {
  std::vector<const Descriptor*> found;
  for (const Descriptor* descriptor : registry())
    if (descriptor->split_phase) found.push_back(descriptor);
  return found;
}

// As nonblocking calls have it.
class WireOnly : public Node {
 public:
  WireOnly(const Descriptor& descriptor, int ranks, wait::Mode mode)
      : Node(descriptor, ranks, mode, {.wire_only = true}) {}
};

OverWire& phase(Node& node, int rank) {
  return *node.rank(rank).split_phase();
}

// One element, chunks of all slots, more than that.
constexpr std::size_t counts[] = {1, 1021, 2 * capacity / sizeof(Matrix) + 5};

std::uint64_t in_us(int us) {
  static const double ns_per_tick = [] {
    const clock::Pair first = clock::read_pair();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return clock::ns_per_tick(first, clock::read_pair());
  }();
  return clock::ticks() + static_cast<std::uint64_t>(us * 1000 / ns_per_tick);
}

}  // namespace

TEST_CASE("a descriptor says whether there is a split phase", "[protocol]") {
  int with = 0;
  for (const Descriptor* descriptor : registry()) {
    INFO(name_of(descriptor->collective) << " " << descriptor->name);
    // Nonblocking calls know no order of arrivals.
    if (descriptor->segment == nullptr || descriptor->needs_arrival_order) {
      CHECK_FALSE(descriptor->split_phase);
      continue;
    }
    if (!descriptor->split_phase && descriptor->region_bytes != nullptr) continue;  // it needs its region
    WireOnly node(*descriptor, 2, wait::Mode::automatic);
    CHECK(descriptor->split_phase == (node.rank(0).split_phase() != nullptr));
    with += descriptor->split_phase ? 1 : 0;
  }
  CHECK(with > 0);
}

// One thread plays all ranks, so that the schedule is the test's: starting and moving on never wait.
TEST_CASE("split phase: ranks start and move on in any order", "[protocol]") {
  for (const Descriptor* descriptor : split_phase_algorithms())
    for (const int ranks : {1, 2, 3, 5, 8})
      for (const std::size_t count : counts) {
        if (count * sizeof(Matrix) > descriptor->max_bytes) continue;
        INFO(name_of(descriptor->collective) << " " << descriptor->name << ", " << ranks << " ranks, " << count);
        WireOnly node(*descriptor, ranks, wait::Mode::automatic);
        const Reduction reduction = reduction_for(true, true);
        const auto p = static_cast<std::size_t>(ranks);
        std::mt19937 random(static_cast<unsigned>(ranks) * 31 + static_cast<unsigned>(count));
        constexpr int calls = 20;
        std::vector<int> number(p, 0);  // of each rank's present or next call
        std::vector<std::unique_ptr<Call>> present(p);
        int wrong = 0;
        long moves = 0;
        while (*std::min_element(number.begin(), number.end()) < calls) {
          const std::size_t rank = random() % p;
          if (number[rank] == calls) continue;
          OverWire& mine = phase(node, static_cast<int>(rank));
          if (present[rank] == nullptr) {
            present[rank] = std::make_unique<Call>(descriptor->collective, reduction, static_cast<int>(rank), ranks,
                                                   number[rank], count, number[rank] % 2 == 1);
            mine.start(present[rank]->operands());
          }
          // Some ranks fall behind for a while.
          const int steps = random() % 8 == 0 ? 50 : 1;
          bool done = false;
          for (int i = 0; i < steps && !done; ++i) done = mine.progress();
          if (!done && ++moves < 20'000'000) continue;
          if (!done) break;
          CHECK(mine.progress());
          if (!present[rank]->is_right()) ++wrong;
          present[rank].reset();
          ++number[rank];
        }
        CHECK(wrong == 0);
        CHECK(*std::min_element(number.begin(), number.end()) == calls);
      }
}

TEST_CASE("split phase: a timeout passes while a rank is missing, and the call ends all the same", "[protocol]") {
  for (const Descriptor* descriptor : split_phase_algorithms())
    for (const wait::Mode mode : {wait::Mode::automatic, wait::Mode::block, wait::Mode::spin})
      for (const std::size_t count : counts) {
        if (count * sizeof(Matrix) > descriptor->max_bytes) continue;
        constexpr int ranks = 3;
        INFO(name_of(descriptor->collective) << " " << descriptor->name << ", " << count);
        WireOnly node(*descriptor, ranks, mode);
        const Reduction reduction = reduction_for(true, true);
        for (int late = 0; late < ranks; ++late) {
          std::atomic<int> given_up{0};
          std::atomic<int> wrong{0};
          on_ranks(ranks, [&](int rank) {
            wait::Site site;
            // Rank `late` is the root of a bcast: nobody can do without it.
            Call call(descriptor->collective, reduction, rank, ranks, late, count, false);
            if (rank == late)
              while (given_up.load() < 2 * (ranks - 1)) std::this_thread::yield();
            phase(node, rank).start(call.operands());
            if (rank != late) {
              // At once, and after a while: false, and the call stays as it is.
              for (const int us : {0, 300}) {
                const std::uint64_t deadline = in_us(us);
                if (phase(node, rank).finish(deadline, site) || clock::ticks() < deadline) ++wrong;
                given_up.fetch_add(1);
              }
            }
            while (!phase(node, rank).finish(in_us(2000), site)) {
            }
            if (!call.is_right()) ++wrong;
            // What has ended stays ended.
            if (!phase(node, rank).finish(0, site) || !phase(node, rank).progress()) ++wrong;
          });
          CHECK(wrong == 0);
        }
      }
}

TEST_CASE("split phase: started, moved on between other work and finished, by threads", "[protocol]") {
  for (const Descriptor* descriptor : split_phase_algorithms())
    for (const int ranks : {2, 3, 5}) {
      INFO(name_of(descriptor->collective) << " " << descriptor->name);
      WireOnly node(*descriptor, ranks, wait::Mode::automatic);
      const Reduction reduction = reduction_for(true, true);
      std::atomic<int> wrong{0};
      on_ranks(ranks, [&](int rank) {
        std::mt19937 random(static_cast<unsigned>(rank) + 5);
        wait::Site site;
        for (int number = 0; number < 60; ++number) {
          Call call(descriptor->collective, reduction, rank, ranks, number, counts[number % 2], number % 2 == 1);
          if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
          if (number % 7 == 3) {
            node.rank(rank).run(call.operands(), site);  // blocking calls between
          } else {
            phase(node, rank).start(call.operands());
            for (unsigned i = random() % 6; i > 0; --i) {
              phase(node, rank).progress();
              std::this_thread::yield();
            }
            while (!phase(node, rank).finish(in_us(static_cast<int>(random() % 300)), site)) {
            }
          }
          if (!call.is_right()) ++wrong;
        }
      });
      CHECK(wrong == 0);
    }
}

}  // namespace papaya
