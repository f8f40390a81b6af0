// Solo and majority allreduce, under every schedule of a few calls and under random ones: no contribution is lost, and
// none is in two results.
#include "algorithms/weak/partial_allreduce.hpp"

#include <string>

#include "tests/catch.hpp"
#include "tests/protocol/partial_contribution.hpp"
#include "tests/unit/support/node_world.hpp"

namespace papaya {
namespace {

struct PartialJob {
  Starter starter;
  int ranks;
  std::uint64_t lag;
  std::uint64_t calls;
  bool stops_often = false;
};
std::string describe(const PartialJob& job) {
  return std::string(job.starter == Starter::first ? "solo" : "majority") + "_allreduce: " + std::to_string(job.ranks) +
         " ranks, lag " + std::to_string(job.lag) + ", " + std::to_string(job.calls) + " calls";
}

struct Partial {
  using Job = PartialJob;
  using Element = PartialContribution;
  static Reduction reduction() { return PartialContribution::reduction(); }
  static PartialShape shape(const Job& job, std::size_t bytes) { return {job.ranks, job.ranks, bytes, job.lag}; }
  static std::size_t region_bytes(const Job& job, std::size_t bytes) { return shape(job, bytes).region_bytes(); }

  class Algorithm final : public PartialAllreduceOf<WordWorld::Word> {
   public:
    Algorithm(const Team& team, const Job& job, std::size_t bytes)
        : PartialAllreduceOf(team, shape(job, bytes), job.starter) {}
    // What it keeps from call to call.
    void put_in(StateDigest& digest) const noexcept {
      for (const std::uint64_t value : {last_, used_, all_left_}) digest.put(value);
    }
  };
  class Ledger final : public PartialLedger {
   public:
    Ledger(int rank, const Job& job) : PartialLedger(rank, job.ranks), ranks_(job.ranks) {}
    void put_in(StateDigest& digest) const {
      for (int rank = 0; rank < ranks_; ++rank) digest.put(used(rank));
    }

   private:
    const int ranks_;
  };
};

TEST_CASE("partial allreduce: every schedule of a few calls is right") {
  const PartialJob jobs[] = {{Starter::first, 1, 0, 3}, {Starter::first, 2, 0, 3}, {Starter::first, 2, 1, 3},
                             {Starter::drawn, 2, 0, 3}, {Starter::drawn, 2, 1, 4}, {Starter::first, 3, 0, 1},
                             {Starter::drawn, 3, 0, 1}};
  explore<NodeWorld<Partial>>(jobs);
}

// A minute: build/tests/unit_tests "[deep]"
TEST_CASE("partial allreduce: every schedule of more calls is right", "[.][deep]") {
  const PartialJob jobs[] = {{Starter::first, 2, 1, 4}, {Starter::first, 3, 1, 2}, {Starter::drawn, 3, 0, 2}};
  explore<NodeWorld<Partial>>(jobs);
}

TEST_CASE("partial allreduce: random schedules of many ranks") {
  const PartialJob jobs[] = {{Starter::first, 3, 0, 20, true}, {Starter::first, 5, 2, 20, true},
                             {Starter::first, 8, 4, 20, true}, {Starter::drawn, 3, 0, 20, true},
                             {Starter::drawn, 5, 1, 20, true}, {Starter::drawn, 8, 4, 20, true}};
  explore_at_random<NodeWorld<Partial>>(jobs);
}

}  // namespace
}  // namespace papaya
