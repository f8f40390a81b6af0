// Solo and majority allreduce, with threads as ranks. All schedules of a few calls: tests/unit.
#include "algorithms/weak/partial_allreduce.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "tests/catch.hpp"
#include "tests/protocol/partial_contribution.hpp"
#include "tests/protocol/region_ranks.hpp"

namespace papaya {
namespace {

constexpr const char* names[] = {"solo_allreduce", "majority_allreduce"};

// Nodes of several ranks, by rank.
const std::vector<int> placements[] = {{0, 1}, {0, 0, 1}, {0, 1, 2, 0, 3}};

// Returns the number of contributions that were left at the end.
std::uint64_t check_contributions(const char* name, int ranks, std::size_t count, std::int64_t lag, wait::Mode mode,
                                  std::uint64_t calls, const std::vector<int>& node_of = {}) {
  CAPTURE(name, ranks, count, lag);
  Reduction reduction = PartialContribution::reduction();
  reduction.by_table = true;  // for threads
  RegionRanks all(name, ranks, count, reduction, {lag, 1}, mode, 1, node_of);
  // The first rank is a leader: its thread answers for its node.
  CHECK(all[0].in_force(partial_thread, 1) == (node_of.empty() ? 0 : 1));
  std::atomic<const char*> fault{nullptr};
  std::atomic<std::uint64_t> left{0};
  on_ranks(ranks, [&](int rank) {
    std::minstd_rand random(static_cast<unsigned>(rank * 100 + static_cast<int>(calls)));
    wait::Site site;
    PartialLedger ledger(rank, ranks);
    std::vector<PartialContribution> contribution(count);
    std::vector<PartialContribution> result(count);
    for (std::uint64_t clock = 1; clock <= calls; ++clock) {
      contribution.assign(count, PartialContribution::of(rank, clock));
      // In place in every other call.
      std::vector<PartialContribution>& receive = clock % 2 == 0 ? contribution : result;
      stop_at_random(random);
      all[rank].run(all.operands(contribution, receive), site);
      if (const char* const found = ledger.fault_in(receive, all[rank].status(), clock); found != nullptr)
        fault = found;
    }
    const std::uint64_t withdrawn = all[rank].withdraw(result.data());
    if (const char* const found = ledger.fault_at_end(result, withdrawn, all[rank].status()); found != nullptr)
      fault = found;
    if (all[rank].withdraw(result.data()) != 0) fault = "a contribution withdrawn twice";
    left += withdrawn;
  });
  const char* const found = fault.load();
  CHECK(std::string(found == nullptr ? "" : found).empty());
  return left;
}

TEST_CASE("partial allreduce: every contribution is in one result", "[protocol]") {
  constexpr wait::Mode modes[] = {wait::Mode::automatic, wait::Mode::yield, wait::Mode::block};
  int turn = 0;
  for (const char* const name : names)
    for (const int ranks : {1, 2, 3, 4, 5, 7, 8})
      for (const std::int64_t lag : {0, 1, 4}) {
        const auto p = static_cast<std::size_t>(ranks);
        const std::size_t count =
            std::array<std::size_t, 7>{1, 40, 700, 0, p - 1, p, p + 1}[static_cast<std::size_t>(turn % 7)];
        check_contributions(name, ranks, count, lag, modes[turn++ % 3], (count == 700 ? 60 : 300) * thorough);
      }
}

TEST_CASE("partial allreduce: every contribution is in one result across nodes, too", "[protocol]") {
  constexpr wait::Mode modes[] = {wait::Mode::automatic, wait::Mode::yield, wait::Mode::block};
  int turn = 0;
  for (const char* const name : names)
    for (const std::vector<int>& node_of : placements)
      for (const std::int64_t lag : {0, 4}) {
        check_contributions(name, static_cast<int>(node_of.size()), turn % 2 == 0 ? 3 : 40, lag, modes[turn % 3],
                            100 * thorough, node_of);
        ++turn;
      }
}

// Some minutes: build/tests/protocol_partial_allreduce "[deep]"
TEST_CASE("partial allreduce: every contribution of a million calls is in one result", "[.][deep]") {
  for (const char* const name : names) check_contributions(name, 4, 8, 4, wait::Mode::automatic, 1000000);
}

TEST_CASE("partial allreduce: the same bits on all ranks", "[protocol]") {
  Reduction sum;
  sum.element_bytes = sizeof(double);
  sum.combine = [](const Reduction&, const void* left, const void* right, void* out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
      static_cast<double*>(out)[i] = static_cast<const double*>(left)[i] + static_cast<const double*>(right)[i];
  };
  constexpr std::uint64_t calls = 200;
  for (const char* const name : names)
    for (const std::size_t count : {std::size_t{7}, std::size_t{5000}}) {
      constexpr int ranks = 4;
      CAPTURE(name, count);
      RegionRanks all(name, ranks, count, sum, {2}, wait::Mode::automatic, (std::uint64_t{1} << 32) - 50);
      std::vector<std::vector<double>> results(ranks);
      on_ranks(ranks, [&](int rank) {
        std::minstd_rand random(static_cast<unsigned>(rank));
        wait::Site site;
        std::vector<double> contribution(count);
        std::vector<double> result(count);
        for (std::uint64_t call = 1; call <= calls; ++call) {
          for (std::size_t i = 0; i < count; ++i)
            contribution[i] = 1.0 / static_cast<double>(3 + static_cast<std::size_t>(rank) * 7 + i * 11 + call * 13);
          stop_at_random(random);
          all[rank].run(all.operands(contribution, result), site);
          for (std::size_t i = 0; i < count; i += count / 7)
            results[static_cast<std::size_t>(rank)].push_back(result[i]);
        }
      });
      for (const std::vector<double>& one : results)
        CHECK(std::memcmp(one.data(), results[0].data(), one.size() * sizeof(double)) == 0);
    }
}

// One thread makes all calls, a part at a time.
TEST_CASE("partial allreduce: the first rank waits for nobody until one is more than lag calls behind", "[protocol]") {
  for (const int ranks : {2, 3, 8})
    for (const std::int64_t lag : {0, 1, 4}) {
      CAPTURE(ranks, lag);
      RegionRanks all("solo_allreduce", ranks, 1, PartialContribution::reduction(), {lag});
      std::vector<std::vector<PartialContribution>> data(static_cast<std::size_t>(ranks));
      const auto start = [&](int rank, std::uint64_t clock) {
        std::vector<PartialContribution>& mine = data[static_cast<std::size_t>(rank)];
        mine.assign(1, PartialContribution::of(rank, clock));
        all[rank].start(all.operands(mine, mine));
        return all[rank].progress();
      };
      const auto ahead = static_cast<std::uint64_t>(lag) + 1;
      for (std::uint64_t clock = 1; clock <= ahead; ++clock) {
        REQUIRE(start(0, clock));
        CHECK(all[0].status().ranks == 1);
        CHECK(all[0].status().own == clock);
        CHECK_FALSE(all[0].status().has_waited);
      }
      CHECK_FALSE(start(0, ahead + 1));
      wait::Site site;
      CHECK_FALSE(all[0].finish(clock::ticks(), site));
      int missing = 0;
      for (int rank = 0; rank < ranks; ++rank) missing += all[0].is_missing(rank);
      CHECK(missing == 1);

      // The late ranks find every result, and what they bring is kept for the call that is executed then.
      for (std::uint64_t clock = 1; clock <= ahead; ++clock)
        for (int rank = 1; rank < ranks; ++rank) {
          REQUIRE(start(rank, clock));
          CHECK(all[rank].status().own == 0);
          CHECK(all[rank].status().unused == clock);
          CHECK(data[static_cast<std::size_t>(rank)][0] == PartialContribution::of(0, clock));
        }
      CHECK(all[0].progress());
      CHECK(all[0].status().has_waited);
      CHECK(all[0].status().ranks == ranks);
      CHECK(all[0].status().oldest == 1);
      // They bring something to the last call, too late.
      for (int rank = 1; rank < ranks; ++rank) {
        REQUIRE(start(rank, ahead + 1));
        CHECK(all[rank].status().own == ahead);
        CHECK(all[rank].status().unused == 1);
        CHECK(all[rank].withdraw(data[static_cast<std::size_t>(rank)].data()) == 1);
        CHECK(data[static_cast<std::size_t>(rank)][0] == PartialContribution::of(rank, ahead + 1));
      }
      CHECK(all[0].withdraw(data[0].data()) == 0);
    }
}

TEST_CASE("partial allreduce: a majority waits for the rank that is drawn, which is another from call to call",
          "[protocol]") {
  constexpr int ranks = 4;
  constexpr std::uint64_t calls = 400;
  RegionRanks all("majority_allreduce", ranks, 1, PartialContribution::reduction(), {0});
  std::vector<std::vector<PartialContribution>> data(ranks);
  std::array<int, ranks> drawn{};
  for (std::uint64_t clock = 1; clock <= calls; ++clock) {
    int started = 0;
    bool is_executed = false;
    // They come in turn, another first in each call.
    for (int i = 0; i < ranks; ++i) {
      const int rank = (i + static_cast<int>(clock)) % ranks;
      std::vector<PartialContribution>& mine = data[static_cast<std::size_t>(rank)];
      mine.assign(1, PartialContribution::of(rank, clock));
      all[rank].start(all.operands(mine, mine));
      ++started;
      const bool is_done = all[rank].progress();
      REQUIRE(is_done >= is_executed);
      if (is_done && !is_executed) {
        is_executed = true;
        ++drawn[static_cast<std::size_t>(rank)];
        REQUIRE(all[rank].status().own == clock);
        REQUIRE(all[rank].status().ranks >= started);
      }
    }
    for (int rank = 0; rank < ranks; ++rank) REQUIRE(all[rank].progress());
  }
  for (const int times : drawn) {
    CHECK(times > 60);
    CHECK(times < 140);
  }
}

}  // namespace
}  // namespace papaya
