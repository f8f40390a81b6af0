// Stale synchronous parallel allreduces with threads as ranks, and what holds for all of them.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "tests/catch.hpp"
#include "tests/protocol/node.hpp"
#include "tests/protocol/ssp_contribution.hpp"
#include "tests/protocol/wires.hpp"

namespace papaya {

class SspRanks {
 public:
  // `values`: of the algorithm's parameters after `slack`; the fallbacks where there are fewer.
  SspRanks(const WeakDescriptor& descriptor, int ranks, std::size_t count, const Reduction& reduction,
           std::uint64_t slack, wait::Mode mode, std::uint64_t first_round = 1, std::vector<std::int64_t> values = {})
      : reduction_(reduction),
        values_(all_values(descriptor, slack, std::move(values))),
        request_{.ranks = ranks,
                 .count = count,
                 .element_bytes = reduction.element_bytes,
                 .reduction = &reduction_,
                 .values = values_},
        wires_(ranks, descriptor.segment(request_), mode) {
    for (int rank = 0; rank < ranks; ++rank) {
      const Team team{.rank = rank,
                      .size = ranks,
                      .arrival_order = false,
                      .region = nullptr,
                      .policy = &wires_.policy(rank),
                      .first_round = first_round,
                      .wire = &wires_[rank]};
      algorithms_.push_back(descriptor.prepare(team, request_));
    }
  }
  Weak& operator[](int rank) { return *algorithms_[static_cast<std::size_t>(rank)]; }
  void end(int rank) { algorithms_[static_cast<std::size_t>(rank)].reset(); }

  template <class Element>
  Operands operands(const std::vector<Element>& contribution, std::vector<Element>& result) const {
    return {.send = contribution.data(),
            .receive = result.data(),
            .count = contribution.size(),
            .bytes = request_.bytes(),
            .root = -1,
            .reduction = &reduction_};
  }

 private:
  static std::vector<std::int64_t> all_values(const WeakDescriptor& descriptor, std::uint64_t slack,
                                              std::vector<std::int64_t> values) {
    values.insert(values.begin(), static_cast<std::int64_t>(slack));
    for (std::size_t i = values.size(); i < descriptor.parameters.size(); ++i)
      values.push_back(descriptor.parameters[i].fallback);
    return values;
  }

  const Reduction reduction_;
  const std::vector<std::int64_t> values_;
  const WeakRequest request_;
  Wires wires_;
  std::vector<std::unique_ptr<Weak>> algorithms_;
};

inline void stop_at_random(std::minstd_rand& random) {
  const auto chance = random() % 128;
  if (chance < 8) std::this_thread::yield();
  if (chance == 8) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
}

// Whole messages, one of every rank, none older than the slack. Ranks stop now and then. `values`: as for SspRanks.
inline void check_whole_messages(const WeakDescriptor& descriptor, const std::vector<std::int64_t>& values = {}) {
  constexpr wait::Mode modes[] = {wait::Mode::automatic, wait::Mode::yield, wait::Mode::block};
  const Reduction reduction = Contribution::reduction(descriptor.commutative_only);
  int turn = 0;
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8})
    for (const std::uint64_t slack : {0, 1, 2, 5}) {
      const auto p = static_cast<std::size_t>(ranks);
      const std::size_t count =
          std::array<std::size_t, 7>{1, 40, 700, 0, p - 1, p, p + 1}[static_cast<std::size_t>(turn % 7)];
      const std::uint64_t calls = (count == 700 ? 60 : 300) * thorough;
      CAPTURE(ranks, slack, count);
      SspRanks all(descriptor, ranks, count, reduction, slack, modes[turn++ % 3], 1, values);
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
          const WeakStatus& status = all[rank].status();
          if (const char* const found = fault_in(receive, all[rank], clock, slack, rank, ranks); found != nullptr)
            fault = found;
          if (!status.has_waited && status.waited_ticks != 0) fault = "no wait, but time waited";
          if (status.has_waited) ++waits;
        }
        all.end(rank);
      });
      const char* const found = fault.load();
      CHECK(std::string(found == nullptr ? "" : found).empty());
      if (ranks == 1) CHECK(waits == 0);
    }
}

inline double contribution_of(int rank, std::size_t element, std::uint64_t clock) {
  return 1.0 / static_cast<double>(3 + static_cast<std::uint64_t>(rank) * 7 + element * 11 + clock * 13);
}

// With slack 0 the same bits on all ranks, whatever their speed. `in_order` combines the ranks' contributions to an
// element.
template <class InOrder>
void check_bits(const WeakDescriptor& descriptor, InOrder in_order, const std::vector<std::int64_t>& values = {}) {
  constexpr std::size_t count = 33;
  Reduction sum;
  sum.element_bytes = sizeof(double);
  sum.combine = [](const Reduction&, const void* left, const void* right, void* out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
      static_cast<double*>(out)[i] = static_cast<const double*>(left)[i] + static_cast<const double*>(right)[i];
  };
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8}) {
    CAPTURE(ranks);
    SspRanks all(descriptor, ranks, count, sum, 0, wait::Mode::automatic, (std::uint64_t{1} << 32) - 50, values);
    std::atomic<int> wrong{0};
    on_ranks(ranks, [&](int rank) {
      std::minstd_rand random(static_cast<unsigned>(rank));
      wait::Site site;
      std::vector<double> contribution(count);
      std::vector<double> result(count);
      for (std::uint64_t call = 1; call <= 100 * thorough; ++call) {
        for (std::size_t i = 0; i < count; ++i) contribution[i] = contribution_of(rank, i, call);
        stop_at_random(random);
        all[rank].run(all.operands(contribution, result), site);
        for (std::size_t i = 0; i < count; ++i) {
          std::vector<double> parts;
          for (int other = 0; other < ranks; ++other) parts.push_back(contribution_of(other, i, call));
          const double expected = in_order(std::move(parts), i, count);
          if (std::memcmp(&result[i], &expected, sizeof expected) != 0) ++wrong;
        }
      }
      all.end(rank);
    });
    CHECK(wrong == 0);
  }
}

// A rank is slack calls ahead of others that keep step, and no more. One thread makes all calls, a part at a time.
inline void check_slack(const WeakDescriptor& descriptor) {
  const Reduction reduction = Contribution::reduction(descriptor.commutative_only);
  for (const int ranks : {2, 3, 4, 5, 8})
    for (const std::uint64_t slack : {0, 1, 2, 5})
      for (int ahead = 0; ahead < ranks; ++ahead) {
        CAPTURE(ranks, slack, ahead);
        SspRanks all(descriptor, ranks, 1, reduction, slack, wait::Mode::yield);
        std::vector<std::vector<Contribution>> data(static_cast<std::size_t>(ranks));
        const auto start = [&](int rank, std::uint64_t clock) {
          std::vector<Contribution>& mine = data[static_cast<std::size_t>(rank)];
          mine.assign(1, Contribution::of(rank, clock));
          all[rank].start(all.operands(mine, mine));
          return all[rank].progress();
        };
        const auto all_but_one = [&](std::uint64_t clock) {
          for (int rank = 0; rank < ranks; ++rank)
            if (rank != ahead) start(rank, clock);
          bool are_done = false;
          for (int turn = 0; turn < 100 && !are_done; ++turn) {
            are_done = true;
            for (int rank = 0; rank < ranks; ++rank)
              if (all[rank].status().clock <= clock && !all[rank].progress()) are_done = false;
          }
          REQUIRE(are_done);
        };

        CHECK_FALSE(start(ahead, 1));  // without a contribution of each there is no result
        all_but_one(1);
        for (std::uint64_t clock = 2; clock <= slack + 1; ++clock) {
          REQUIRE(start(ahead, clock));
          CHECK(all[ahead].status().oldest == 1);
          CHECK_FALSE(all[ahead].status().has_waited);
        }
        CHECK_FALSE(start(ahead, slack + 2));
        wait::Site site;
        CHECK_FALSE(all[ahead].finish(clock::ticks(), site));
        int missing = 0;
        for (int rank = 0; rank < ranks; ++rank) missing += all[ahead].is_missing(rank);
        CHECK(missing == 1);
        CHECK_FALSE(all[ahead].may_end());

        for (std::uint64_t clock = 2; clock <= slack + 2; ++clock) all_but_one(clock);
        CHECK(all[ahead].progress());
        CHECK(all[ahead].status().has_waited);
        CHECK(all[ahead].status().oldest >= 2);
        for (int rank = 0; rank < ranks; ++rank) CHECK(all[rank].may_end());
      }
}

}  // namespace papaya
