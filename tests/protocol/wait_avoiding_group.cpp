// The wait-avoiding group allreduce, with threads as ranks. All schedules of a few calls: tests/unit.
#include "algorithms/weak/wait_avoiding_group.hpp"

#include <array>
#include <atomic>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/protocol/group_contribution.hpp"
#include "tests/protocol/region_ranks.hpp"

namespace papaya {
namespace {

constexpr const char* name = "wait_avoiding_group";

struct GroupJob {
  int ranks;
  int group;
  std::int64_t period;
  std::int64_t lag;
  std::size_t count;
  std::uint64_t calls;
  wait::Mode mode;
  std::vector<int> node_of = {};  // all on one node if empty
};

void check_groups(const GroupJob& job) {
  const auto p = static_cast<std::size_t>(job.ranks);
  CAPTURE(job.ranks, job.group, job.lag, job.count, job.period);
  Reduction reduction = Contribution::reduction(true);
  reduction.by_table = true;  // for threads
  RegionRanks all(name, job.ranks, job.count, reduction, {job.group, job.period, job.lag, 1}, job.mode, 1, job.node_of);
  CHECK(all[0].in_force(group_thread, 1) == (job.node_of.empty() ? 0 : 1));
  const GroupShape shape{job.ranks, 0, job.group, static_cast<std::uint64_t>(job.period),
                         static_cast<std::uint64_t>(job.lag)};
  std::atomic<const char*> fault{nullptr};
  std::vector<std::vector<Contribution>> results(p);
  on_ranks(job.ranks, [&](int rank) {
    std::minstd_rand random(static_cast<unsigned>(rank * 100 + static_cast<int>(job.calls)));
    wait::Site site;
    std::vector<Contribution> contribution(job.count);
    std::vector<Contribution> result(job.count);
    for (std::uint64_t clock = 1; clock <= job.calls; ++clock) {
      contribution.assign(job.count, Contribution::of(rank, clock));
      std::vector<Contribution>& receive = clock % 2 == 0 ? contribution : result;  // or in place
      stop_at_random(random);
      all[rank].run(all.operands(contribution, receive), site);
      if (const char* const found = fault_in_group(receive, all[rank].status(), clock, rank, shape); found != nullptr)
        fault = found;
      if (job.count != 0) results[static_cast<std::size_t>(rank)].push_back(receive[0]);
    }
  });
  std::map<std::pair<std::uint64_t, int>, Contribution> of_groups;
  for (int rank = 0; rank < job.ranks; ++rank)
    for (std::size_t call = 0; call < results[static_cast<std::size_t>(rank)].size(); ++call) {
      const Contribution& result = results[static_cast<std::size_t>(rank)][call];
      const auto found = of_groups.emplace(std::pair{call, shape.group_of(rank, call + 1)}, result).first->second;
      if (found != result) fault = "members of a group with different results";
    }
  const char* const found = fault.load();
  CHECK(std::string(found == nullptr ? "" : found).empty());
}

constexpr wait::Mode modes[] = {wait::Mode::automatic, wait::Mode::yield, wait::Mode::block};

TEST_CASE("wait-avoiding group: one contribution of every member, the same for all of them", "[protocol]") {
  int turn = 0;
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8})
    for (const int group : {1, 2, 4})
      for (const std::int64_t lag : {0, 1, 4}) {
        const auto p = static_cast<std::size_t>(ranks);
        const std::size_t count =
            std::array<std::size_t, 7>{1, 40, 700, 0, p - 1, p, p + 1}[static_cast<std::size_t>(turn % 7)];
        const std::int64_t period = std::array{3, 10, 1, 1000}[static_cast<std::size_t>(turn % 4)];
        check_groups(
            {ranks, group, period, lag, count, (count == 700 ? 60u : 200u) * std::uint64_t{thorough}, modes[turn % 3]});
        ++turn;
      }
}

TEST_CASE("wait-avoiding group: the same across nodes, where every rank has a thread", "[protocol]") {
  int turn = 0;
  for (const std::vector<int>& node_of : {std::vector<int>{0, 1}, {0, 0, 1}, {0, 1, 2, 0, 3}})
    for (const int group : {2, 4})
      for (const std::int64_t lag : {0, 4}) {
        const std::int64_t period = std::array{3, 10, 1000}[static_cast<std::size_t>(turn % 3)];
        check_groups({static_cast<int>(node_of.size()), group, period, lag, turn % 2 == 0 ? 3u : 40u,
                      100 * std::uint64_t{thorough}, modes[turn % 3], node_of});
        ++turn;
      }
}

// One thread makes all calls, a part at a time.
TEST_CASE("wait-avoiding group: a rank waits for nobody until one is more than lag calls behind", "[protocol]") {
  for (const int ranks : {2, 4, 8})
    for (const std::int64_t lag : {0, 1, 4}) {
      CAPTURE(ranks, lag);
      RegionRanks all(name, ranks, 1, Contribution::reduction(true), {ranks, 1000, lag});
      std::vector<std::vector<Contribution>> data(static_cast<std::size_t>(ranks));
      const auto start = [&](int rank, std::uint64_t clock) {
        std::vector<Contribution>& mine = data[static_cast<std::size_t>(rank)];
        mine.assign(1, Contribution::of(rank, clock));
        all[rank].start(all.operands(mine, mine));
        return all[rank].progress();
      };
      // The first call is of all.
      for (int rank = 0; rank + 1 < ranks; ++rank) CHECK_FALSE(start(rank, 1));
      start(ranks - 1, 1);
      for (int turn = 0; turn < 2; ++turn)
        for (int rank = 0; rank < ranks; ++rank) all[rank].progress();
      for (int rank = 0; rank < ranks; ++rank) {
        REQUIRE(all[rank].progress());
        CHECK(all[rank].status().oldest == 1);
      }
      const auto ahead = static_cast<std::uint64_t>(lag) + 2;
      for (std::uint64_t clock = 2; clock <= ahead; ++clock) {
        REQUIRE(start(0, clock));
        CHECK(all[0].status().own == clock);
        CHECK(all[0].status().oldest == 1);
        CHECK(all[0].status().ranks == ranks);
        CHECK_FALSE(all[0].status().has_waited);
      }
      CHECK_FALSE(start(0, ahead + 1));
      // The late ranks find every result, with a contribution of theirs of before.
      for (std::uint64_t clock = 2; clock <= ahead; ++clock)
        for (int rank = 1; rank < ranks; ++rank) {
          REQUIRE(start(rank, clock));
          CHECK(all[rank].status().own == 1);
          CHECK(data[static_cast<std::size_t>(rank)][0].clocks[0] == clock);
        }
      CHECK(all[0].progress());
      CHECK(all[0].status().has_waited);
      CHECK(all[0].status().oldest == ahead);
      for (int rank = 1; rank < ranks; ++rank) REQUIRE(start(rank, ahead + 1));
    }
}

}  // namespace
}  // namespace papaya
