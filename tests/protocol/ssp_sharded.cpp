// The stale synchronous parallel allreduce over shards, with threads as ranks, in all its variants. All schedules of a
// few calls: tests/unit.
#include "algorithms/weak/ssp_sharded.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "tests/catch.hpp"
#include "tests/protocol/node.hpp"
#include "tests/protocol/shard_contribution.hpp"
#include "tests/protocol/wires.hpp"

namespace papaya {
namespace {

using Keeper = SspSharded::Keeper;

// As if it were papaya's own, hence for its threads.
Reduction own(Reduction reduction) {
  reduction.by_table = true;
  return reduction;
}

struct Variant {
  std::uint64_t slack;
  bool is_consistent;
  Keeper keeper;
};

class ShardedRanks {
 public:
  ShardedRanks(int ranks, std::size_t count, const Variant& variant, const Reduction& reduction, wait::Mode mode,
               std::uint64_t first_round = 1, std::size_t least_bytes = 1)
      : reduction_(reduction),
        shards_(ranks, count, reduction.element_bytes, {variant.slack, variant.is_consistent, least_bytes}),
        wires_(ranks, shards_.segment(), mode) {
    for (int rank = 0; rank < ranks; ++rank) {
      const Team team{.rank = rank,
                      .size = ranks,
                      .arrival_order = false,
                      .region = nullptr,
                      .policy = &wires_.policy(rank),
                      .first_round = first_round,
                      .wire = &wires_[rank]};
      algorithms_.push_back(std::make_unique<SspSharded>(team, shards_, reduction_, variant.keeper));
    }
  }
  SspSharded& operator[](int rank) { return *algorithms_[static_cast<std::size_t>(rank)]; }
  void end(int rank) { algorithms_[static_cast<std::size_t>(rank)].reset(); }
  const SspShards& shards() const { return shards_; }

  template <class Element>
  Operands operands(const std::vector<Element>& contribution, std::vector<Element>& result) const {
    return {.send = contribution.data(),
            .receive = result.data(),
            .count = contribution.size(),
            .bytes = contribution.size() * sizeof(Element),
            .root = -1,
            .reduction = &reduction_};
  }

 private:
  const Reduction reduction_;
  const SspShards shards_;
  Wires wires_;
  std::vector<std::unique_ptr<SspSharded>> algorithms_;
};

void stop_at_random(std::minstd_rand& random) {
  const auto chance = random() % 128;
  if (chance < 8) std::this_thread::yield();
  if (chance == 8) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
}

constexpr wait::Mode modes[] = {wait::Mode::automatic, wait::Mode::yield, wait::Mode::block};

// Which variant, in turn: all four with all numbers of ranks, all slacks and all sizes.
TEST_CASE("ssp sharded: whole messages, one of every rank, none older than the slack, status exact", "[protocol]") {
  int turn = 0;
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8})
    for (const std::uint64_t slack : {0, 1, 2, 5})
      for (const bool is_consistent : {false, true}) {
        const std::size_t count = std::array<std::size_t, 5>{3, 40, 700, 0, 8}[static_cast<std::size_t>(turn % 5)];
        const Keeper keeper = (turn / 2 + turn / 8) % 2 == 0 ? Keeper::thread : Keeper::calls;
        const std::uint64_t calls = (count == 700 ? 30 : 120) * thorough;
        CAPTURE(ranks, slack, is_consistent, keeper == Keeper::thread, count);
        ++turn;
        ShardedRanks all(ranks, count, {slack, is_consistent, keeper}, own(Contribution::reduction()), modes[turn % 3],
                         1, turn % 4 == 0 ? 200 : 1);
        CHECK(all[0].has_thread() == (keeper == Keeper::thread && ranks > 1 && count > 0));
        std::atomic<const char*> fault{nullptr};
        std::atomic<std::uint64_t> waits{0};
        on_ranks(ranks, [&](int rank) {
          std::minstd_rand random(static_cast<unsigned>(rank * 100 + turn));
          wait::Site site;
          std::vector<Contribution> contribution(count);
          std::vector<Contribution> result(count);
          for (std::uint64_t clock = 1; clock <= calls; ++clock) {
            contribution.assign(count, Contribution::of(rank, clock));
            // In place in every other call.
            std::vector<Contribution>& receive = clock % 2 == 0 ? contribution : result;
            stop_at_random(random);
            all[rank].run(all.operands(contribution, receive), site);
            if (const char* const found = fault_in_shards(receive, all[rank], clock, rank); found != nullptr)
              fault = found;
            if (!all[rank].status().has_waited && all[rank].status().waited_ticks != 0)
              fault = "no wait, but time waited";
            if (all[rank].status().has_waited) ++waits;
          }
          all.end(rank);
        });
        const char* const found = fault.load();
        CHECK(std::string(found == nullptr ? "" : found).empty());
        if (ranks == 1) CHECK(waits == 0);
      }
}

double contribution_of(int rank, std::size_t element, std::uint64_t clock) {
  return 1.0 / static_cast<double>(3 + static_cast<std::uint64_t>(rank) * 7 + element * 11 + clock * 13);
}

// A shard of which the keeper combines more than a piece, too.
TEST_CASE("ssp sharded: with slack 0 the same bits as in the order of ranks, whatever their speed", "[protocol]") {
  Reduction sum;
  sum.element_bytes = sizeof(double);
  sum.combine = [](const Reduction&, const void* left, const void* right, void* out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
      static_cast<double*>(out)[i] = static_cast<const double*>(left)[i] + static_cast<const double*>(right)[i];
  };
  int turn = 0;
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8})
    for (const bool is_consistent : {false, true}) {
      const std::size_t count = ranks == 3 ? 9001 : 33;
      const Keeper keeper = (turn / 2 + turn) % 2 == 0 ? Keeper::thread : Keeper::calls;
      ++turn;
      CAPTURE(ranks, is_consistent, keeper == Keeper::thread);
      ShardedRanks all(ranks, count, {0, is_consistent, keeper}, own(sum), wait::Mode::automatic,
                       (std::uint64_t{1} << 32) - 50, ranks == 3 ? 1 << 20 : 1);
      std::atomic<int> wrong{0};
      on_ranks(ranks, [&](int rank) {
        std::minstd_rand random(static_cast<unsigned>(rank));
        wait::Site site;
        std::vector<double> contribution(count);
        std::vector<double> result(count);
        for (std::uint64_t call = 1; call <= (count > 1000 ? 5 : 60) * thorough; ++call) {
          for (std::size_t i = 0; i < count; ++i) contribution[i] = contribution_of(rank, i, call);
          stop_at_random(random);
          all[rank].run(all.operands(contribution, result), site);
          for (std::size_t i = 0; i < count; ++i) {
            double expected = contribution_of(0, i, call);
            for (int other = 1; other < ranks; ++other) expected += contribution_of(other, i, call);
            if (std::memcmp(&result[i], &expected, sizeof expected) != 0) ++wrong;
          }
        }
        all.end(rank);
      });
      CHECK(wrong == 0);
    }
}

// One thread makes all calls, a part at a time. A rank that is ahead needs the others' shards served, so it is ahead
// only where they are; how far, the contributions decide.
TEST_CASE("ssp sharded: a rank whose shards are served is slack calls ahead, and no more", "[protocol]") {
  for (const int ranks : {2, 3, 4, 8})
    for (const std::uint64_t slack : {0, 1, 2, 5}) {
      CAPTURE(ranks, slack);
      ShardedRanks all(ranks, static_cast<std::size_t>(ranks), {slack, false, Keeper::caller},
                       Contribution::reduction(), wait::Mode::yield);
      std::vector<std::vector<Contribution>> data(static_cast<std::size_t>(ranks));
      const auto serve = [&] {
        for (int turn = 0; turn < 3; ++turn)
          for (int rank = 0; rank < ranks; ++rank) all[rank].serve();
      };
      const auto start = [&](int rank, std::uint64_t clock) {
        std::vector<Contribution>& mine = data[static_cast<std::size_t>(rank)];
        mine.assign(static_cast<std::size_t>(ranks), Contribution::of(rank, clock));
        all[rank].start(all.operands(mine, mine));
        all[rank].progress();
        serve();
        return all[rank].progress();
      };

      CHECK_FALSE(start(0, 1));
      for (int rank = 1; rank + 1 < ranks; ++rank) CHECK_FALSE(start(rank, 1));
      CHECK(start(ranks - 1, 1));
      for (int rank = 0; rank < ranks; ++rank) REQUIRE(all[rank].progress());
      for (std::uint64_t clock = 2; clock <= slack + 1; ++clock) {
        REQUIRE(start(0, clock));
        CHECK(all[0].status().oldest == 1);
      }
      CHECK_FALSE(start(0, slack + 2));
      wait::Site site;
      CHECK_FALSE(all[0].finish(clock::ticks(), site));
      for (int rank = 0; rank < ranks; ++rank) CHECK(all[0].is_missing(rank) == (rank != 0));
      CHECK_FALSE(all[0].may_end());

      for (std::uint64_t clock = 2; clock <= slack + 2; ++clock)
        for (int rank = 1; rank < ranks; ++rank) start(rank, clock);
      for (int rank = 0; rank < ranks; ++rank) REQUIRE(all[rank].progress());
      CHECK(all[0].status().has_waited);
      CHECK(all[0].status().oldest >= 2);
      // Each tells the others, and hears them.
      for (int rank = 0; rank + 1 < ranks; ++rank) CHECK_FALSE(all[rank].may_end());
      for (int rank = ranks - 1; rank >= 0; --rank) CHECK(all[rank].may_end());
    }
}

// Rank 2 has left its call 2, which it came to first, before the others come to theirs; what they bring to it they need
// in call 3, of its shard too.
TEST_CASE("ssp sharded: the thread of a rank that computes serves the others", "[protocol]") {
  for (const bool is_consistent : {false, true}) {
    ShardedRanks all(3, 3, {1, is_consistent, Keeper::thread}, own(Contribution::reduction()), wait::Mode::automatic);
    std::atomic<bool> is_ahead{false};
    std::atomic<int> made{0};
    std::atomic<const char*> fault{nullptr};
    on_ranks(3, [&](int rank) {
      wait::Site site;
      std::vector<Contribution> contribution(3);
      std::vector<Contribution> result(3);
      const auto call = [&](std::uint64_t clock) {
        contribution.assign(3, Contribution::of(rank, clock));
        all[rank].run(all.operands(contribution, result), site);
        if (const char* const found = fault_in_shards(result, all[rank], clock, rank); found != nullptr) fault = found;
      };
      call(1);
      while (rank != 2 && !is_ahead) std::this_thread::yield();
      call(2);
      if (rank == 2) is_ahead = true;
      while (rank == 2 && made < 2) std::this_thread::yield();
      call(3);
      ++made;
      all.end(rank);
    });
    CHECK(fault.load() == nullptr);
  }
}

}  // namespace
}  // namespace papaya
