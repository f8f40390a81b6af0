// The wait-avoiding group allreduce: its groups, every schedule of a few calls and random ones of more ranks.
#include "algorithms/weak/wait_avoiding_group.hpp"

#include <set>
#include <string>

#include "tests/catch.hpp"
#include "tests/protocol/group_contribution.hpp"
#include "tests/unit/support/node_world.hpp"

namespace papaya {
namespace {

TEST_CASE("wait-avoiding group: groups are of the size asked for, and together reach every rank") {
  for (int ranks = 1; ranks <= 40; ++ranks)
    for (const int group : {1, 2, 4, 8, 64}) {
      CAPTURE(ranks, group);
      const GroupShape shape{ranks, 0, group, 1000, 0};
      const int positions = shape.positions();
      const int size = std::min(group, positions);
      std::set<int> reached{0};  // by what rank 0 brought to the first of the calls
      for (std::uint64_t number = 2; number < 2 + 6; ++number) {
        std::vector<int> members(static_cast<std::size_t>(shape.groups()));
        for (int rank = 0; rank < ranks; ++rank) {
          const int its = shape.group_of(rank, number);
          REQUIRE(its >= 0);
          REQUIRE(its < shape.groups());
          if (rank < positions)
            ++members[static_cast<std::size_t>(its)];
          else
            REQUIRE(its == shape.group_of(rank - positions, number));
        }
        for (const int found : members) REQUIRE(found == size);
        std::set<int> next;
        for (int rank = 0; rank < ranks; ++rank)
          for (const int one : reached)
            if (shape.group_of(rank, number) == shape.group_of(one, number)) next.insert(rank);
        reached = next;
      }
      if (group > 1 || ranks == 1) CHECK(reached.size() == static_cast<std::size_t>(ranks));
    }
}

struct GroupJob {
  int ranks;
  int group;
  std::uint64_t period;
  std::uint64_t lag;
  std::uint64_t calls;
  bool stops_often = false;
};
std::string describe(const GroupJob& job) {
  return "wait_avoiding_group: " + std::to_string(job.ranks) + " ranks, groups of " + std::to_string(job.group) +
         ", period " + std::to_string(job.period) + ", lag " + std::to_string(job.lag) + ", " +
         std::to_string(job.calls) + " calls";
}
struct Groups {
  using Job = GroupJob;
  using Element = Contribution;
  static Reduction reduction() { return Contribution::reduction(true); }
  static GroupShape shape(const Job& job, std::size_t bytes) {
    return {job.ranks, bytes, job.group, job.period, job.lag};
  }
  static std::size_t region_bytes(const Job& job, std::size_t bytes) { return shape(job, bytes).region_bytes(); }

  class Algorithm final : public WaitAvoidingGroupOf<WordWorld::Word> {
   public:
    Algorithm(const Team& team, const Job& job, std::size_t bytes) : WaitAvoidingGroupOf(team, shape(job, bytes)) {}
    void put_in(StateDigest& /*digest*/) const noexcept {}  // it keeps nothing from call to call
  };
  class Ledger final {
   public:
    Ledger(int rank, const Job& job) : rank_(rank), shape_(shape(job, 0)) {}
    const char* fault_in(std::span<const Contribution> result, const WeakStatus& status, std::uint64_t clock) const {
      return fault_in_group(result, status, clock, rank_, shape_);
    }
    static const char* fault_at_end(std::span<const Contribution> /*left*/, std::uint64_t withdrawn,
                                    const WeakStatus& /*status*/) {
      return withdrawn == 0 ? nullptr : "something is left";
    }
    void put_in(StateDigest& /*digest*/) const noexcept {}

   private:
    const int rank_;
    const GroupShape shape_;
  };
};

TEST_CASE("wait-avoiding group: every schedule of a few calls is right") {
  const GroupJob jobs[] = {{1, 1, 2, 0, 3}, {2, 2, 9, 0, 3}, {2, 2, 1, 1, 2}};
  explore<NodeWorld<Groups>>(jobs);
}

TEST_CASE("wait-avoiding group: every schedule of more calls is right", "[.][deep]") {
  const GroupJob jobs[] = {{2, 2, 9, 1, 3}, {3, 2, 9, 0, 1}};
  explore<NodeWorld<Groups>>(jobs);
}

TEST_CASE("wait-avoiding group: random schedules of many ranks") {
  const GroupJob jobs[] = {{2, 2, 5, 0, 20, true},
                           {4, 2, 4, 1, 20, true},
                           {5, 4, 10, 2, 20, true},
                           {8, 2, 10, 4, 20, true},
                           {8, 4, 3, 1, 20, true}};
  explore_at_random<NodeWorld<Groups>>(jobs);
}

}  // namespace
}  // namespace papaya
