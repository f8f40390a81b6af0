// Partial and group allreduces across nodes, under every order in which writes land, ranks go on and their threads
// serve, in a few calls, and under random ones of more ranks. The classes themselves run, over a wire on which a write
// is under way until the test lets it land. A move of a rank or of its thread goes as far as it gets; what threads that
// share words of memory do to each other in between is tested with those (partial_allreduce.cpp, tests/protocol).
#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "algorithms/weak/group_across_nodes.hpp"
#include "algorithms/weak/partial_across_nodes.hpp"
#include "tests/catch.hpp"
#include "tests/protocol/group_contribution.hpp"
#include "tests/protocol/partial_contribution.hpp"
#include "tests/unit/support/relay_world.hpp"

namespace papaya {
namespace {

struct PartialSubject {
  using Element = PartialContribution;
  using Algorithm = PartialAcrossNodesOf<std::atomic<std::uint64_t>>;
  static Reduction reduction() { return PartialContribution::reduction(); }
  static SegmentShape segment(const RelayJob& /*job*/, const WeakRequest& request) {
    return Algorithm::relay_shape(request).segment();
  }
  static std::size_t region_bytes(const RelayJob& /*job*/, const WeakRequest& request) {
    return PartialShape::of(request).region_bytes();
  }
  static std::unique_ptr<Algorithm> prepare(const Team& team, const RelayJob& job, const WeakRequest& request) {
    return std::make_unique<Algorithm>(team, request, job.starter, false);
  }
  class Ledger : public PartialLedger {
   public:
    Ledger(int rank, const RelayJob& job, const WeakRequest& request)
        : PartialLedger(rank, request.ranks), ranks_(job.ranks()) {}
    template <class Put>
    void put_state(Put put) const {
      for (int rank = 0; rank < ranks_; ++rank) put(used(rank));
    }

   private:
    int ranks_;
  };
};

struct GroupSubject {
  using Element = Contribution;
  using Algorithm = GroupAcrossNodes;
  static GroupShape shape(const RelayJob& job, const WeakRequest& request) {
    return {request.ranks, request.bytes(), job.group, job.period, job.lag};
  }
  static Reduction reduction() { return Contribution::reduction(true); }
  static SegmentShape segment(const RelayJob& job, const WeakRequest& request) {
    return Algorithm::relay_shape(shape(job, request)).segment();
  }
  static std::size_t region_bytes(const RelayJob& /*job*/, const WeakRequest& /*request*/) { return 64; }
  static std::unique_ptr<Algorithm> prepare(const Team& team, const RelayJob& job, const WeakRequest& request) {
    return std::make_unique<Algorithm>(team, shape(job, request), *request.reduction, false);
  }
  class Ledger {
   public:
    Ledger(int rank, const RelayJob& job, const WeakRequest& request) : rank_(rank), shape_(shape(job, request)) {}
    const char* fault_in(std::span<const Contribution> result, const WeakStatus& status, std::uint64_t clock) const {
      return fault_in_group(result, status, clock, rank_, shape_);
    }
    static const char* fault_at_end(std::span<const Contribution> /*left*/, std::uint64_t withdrawn,
                                    const WeakStatus& /*status*/) {
      return withdrawn == 0 ? nullptr : "something is left";
    }
    template <class Put>
    void put_state(Put /*put*/) const {}

   private:
    const int rank_;
    const GroupShape shape_;
  };
};

TEST_CASE("relays: every schedule of a few partial allreduces is right") {
  const RelayJob jobs[] = {
      {{1, 1}, 0, 3, false},
      {{1, 1}, 1, 3, true},
      {{2, 1}, 0, 2, false},
      {{1, 2}, 0, 1, true},
      {{1, 1, 1}, 1, 2, false},
      {{1, 1}, 1, 3, true, Starter::drawn},
      {{2, 1}, 0, 2, true, Starter::drawn},
  };
  explore<RelayWorld<PartialSubject>>(jobs);
}

TEST_CASE("relays: every schedule of a few group allreduces is right") {
  const RelayJob jobs[] = {
      {.node_sizes = {1, 1}, .lag = 1, .calls = 3, .has_threads = false, .group = 2, .period = 9},
      {.node_sizes = {1, 1}, .lag = 0, .calls = 3, .has_threads = true, .group = 2, .period = 2},
      {.node_sizes = {1, 1, 1}, .lag = 1, .calls = 2, .has_threads = false, .group = 2, .period = 9},
  };
  explore<RelayWorld<GroupSubject>>(jobs);
}

TEST_CASE("relays: every schedule of more calls is right", "[.][deep]") {
  const RelayJob partial[] = {
      {{1, 2}, 1, 2, true}, {{1, 1, 1}, 1, 2, true}, {{2, 2}, 1, 2, true}, {{1, 1, 1, 1}, 0, 1, true}};
  explore<RelayWorld<PartialSubject>>(partial);
  const RelayJob group[] = {
      {.node_sizes = {1, 1}, .lag = 1, .calls = 4, .has_threads = true, .group = 2, .period = 9},
      {.node_sizes = {1, 1, 1}, .lag = 1, .calls = 3, .has_threads = true, .group = 2, .period = 9}};
  explore<RelayWorld<GroupSubject>>(group);
}

// The runnable one of the highest priority moves, and priorities change now and then.
template <class Subject, std::size_t n>
void at_random(const RelayJob (&jobs)[n]) {
  std::vector<Fiber> none;
  for (const RelayJob& job : jobs)
    for (unsigned seed = 1; seed <= 60; ++seed) {
      CAPTURE(describe(job), seed);
      std::minstd_rand random(seed);
      RelayWorld<Subject> world(job, none);
      std::vector<std::uint64_t> priorities(static_cast<std::size_t>(job.ranks() * (job.ranks() + 2)));
      for (std::uint64_t& priority : priorities) priority = random();
      for (std::vector<int> choices = world.can_move(); !choices.empty(); choices = world.can_move()) {
        if (random() % 16 == 0) priorities[random() % priorities.size()] = random();
        world.move(*std::max_element(choices.begin(), choices.end(), [&](int a, int b) {
          return priorities[static_cast<std::size_t>(a)] < priorities[static_cast<std::size_t>(b)];
        }));
        if (!world.fault().empty()) break;
      }
      INFO(world.fault());
      REQUIRE(world.fault().empty());
      REQUIRE(world.is_over());
    }
}

TEST_CASE("relays: random schedules of many ranks") {
  const RelayJob partial[] = {{{1, 1, 1, 1, 1}, 1, 12, true},
                              {{3, 1, 2, 2}, 0, 12, true},
                              {{1, 3, 2}, 2, 12, false},
                              {{1, 1, 1, 1, 1, 1, 1, 1}, 4, 12, true},
                              {{2, 3, 1}, 1, 12, true, Starter::drawn},
                              {{4, 4}, 2, 12, false, Starter::drawn}};
  at_random<PartialSubject>(partial);
  const RelayJob group[] = {
      {.node_sizes = {1, 1, 1, 1}, .lag = 1, .calls = 14, .has_threads = true, .group = 2, .period = 5},
      {.node_sizes = {2, 2, 1}, .lag = 2, .calls = 14, .has_threads = true, .group = 4, .period = 10},
      {.node_sizes = {1, 1, 1, 1, 1, 1, 1, 1}, .lag = 3, .calls = 14, .has_threads = true, .group = 2, .period = 14},
      {.node_sizes = {3, 4}, .lag = 0, .calls = 14, .has_threads = false, .group = 4, .period = 3}};
  at_random<GroupSubject>(group);
}

}  // namespace
}  // namespace papaya
