// What the ranks of a trial know of how they arrived.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/support/trial_run.hpp"

namespace papaya::tuning {

using support::costs;
using support::Job;
using support::one_percent;
using support::Run;

TEST_CASE("a trial: all ranks know who was late at the calls that were measured, and how late") {
  Job job;
  job.cost = costs({3'000, 5'000, 4'000, 100'000});
  job.spread = [](std::int64_t) { return 200'000; };
  for (const bool has_one_clock : {true, false}) {
    job.has_one_clock = has_one_clock;
    Run run(job);
    run.make(40);
    REQUIRE(run.first().seen().size() == 8);
    for (const MeasuredCall& call : run.first().seen()) {
      CHECK(call.late == 0);
      CHECK(call.wait_ns > 100'000);
      CHECK(call.wait_ns < 400'000);
      CHECK(call.cost_ns < 4'000);
    }
    run.make(50'000);
    CHECK(run.first().seen().size() == Trial::most_seen);
  }
}

TEST_CASE("a trial: of rooted calls, late is who is waited for; of two that come at the same moment neither is") {
  constexpr std::int64_t late_ns = 100'000;
  struct Arrival {
    std::int64_t at_ns;
    bool is_waited_for;
    bool waits;
  };
  const auto seen_after = [](const std::vector<Arrival>& arrivals) {
    std::vector<Trial> ranks(arrivals.size(), Trial({.candidates = 1, .share = one_percent}));
    for (std::int64_t call = 0; !ranks.front().wants_exchange(); ++call)
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        const std::int64_t begin = 1'000'000 + call * 10'000'000;
        ranks[i].keep(ranks[i].slot(), 0,
                      {begin + arrivals[i].at_ns, begin + 3 * late_ns, arrivals[i].is_waited_for, arrivals[i].waits});
        ranks[i].count_call();
      }
    std::vector<std::int64_t> largest = ranks.front().largest(1, 0, 1, 0);
    for (const Trial& one : ranks) {
      const std::vector<std::int64_t> mine = one.largest(1, 0, 1, 0);
      for (std::size_t i = 0; i < mine.size(); ++i) largest[i] = std::max(largest[i], mine[i]);
    }
    std::vector<std::int64_t> sums(ranks.front().sums(largest, 0).size());
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const std::vector<std::int64_t> mine = ranks[rank].sums(largest, static_cast<int>(rank));
      for (std::size_t i = 0; i < mine.size(); ++i) sums[i] += mine[i];
    }
    ranks.front().take(largest, sums, static_cast<int>(ranks.size()));
    return std::vector<MeasuredCall>(ranks.front().seen().begin(), ranks.front().seen().end());
  };
  // A broadcast from rank 1: rank 2, who comes last, is waited for by nobody.
  const std::vector<MeasuredCall> bcast =
      seen_after({{0, false, true}, {late_ns, true, true}, {2 * late_ns, false, true}});
  REQUIRE(bcast.size() == 8);
  CHECK(bcast.front().late == 1);
  CHECK(bcast.front().wait_ns == late_ns);
  // A reduction to rank 1, which rank 2 holds up; the same if the root comes last.
  const std::vector<MeasuredCall> reduce =
      seen_after({{0, true, false}, {late_ns, true, true}, {2 * late_ns, true, false}});
  REQUIRE(reduce.size() == 8);
  CHECK(reduce.front().late == 2);
  CHECK(reduce.front().wait_ns == late_ns);
  const std::vector<MeasuredCall> waited_for_nobody = seen_after({{0, true, false}, {late_ns, true, true}});
  REQUIRE(waited_for_nobody.size() == 8);
  CHECK(waited_for_nobody.front().wait_ns == 0);
  CHECK(seen_after({{0, true, true}, {late_ns, true, true}, {late_ns, true, true}}).empty());
}

TEST_CASE("a trial: another pattern of arrivals makes one due, though nothing costs more than before") {
  Job job;
  job.cost = [](std::size_t candidate, std::int64_t call) -> std::int64_t {
    constexpr std::int64_t before[] = {9'000, 5'000, 3'000, 20'000};
    constexpr std::int64_t after[] = {9'000, 1'000, 3'000, 20'000};
    return (call < 50'000 ? before : after)[candidate];
  };
  for (const bool is_told : {false, true}) {
    Run run(job);
    const auto note = [&](std::int64_t pattern) {
      for (Trial& one : run.all()) one.note_pattern(pattern);
    };
    note(2);
    run.make(50'000);
    CHECK(run.first().in_use() == 2);
    const std::int64_t trials = run.first().trials();
    // What is not known any more is no other pattern.
    note(is_told ? 3 : 0);
    run.make(800);
    CHECK(run.first().trials() == trials + (is_told ? 1 : 0));
    CHECK(run.first().in_use() == (is_told ? 1 : 2));
  }
}

TEST_CASE("a trial: until one has ended, who serves can be told; and with one candidate none begins") {
  Job job;
  job.share = 1;  // nothing may be tried
  job.cost = costs({9'000, 5'000, 3'000, 20'000});
  Run run(job);
  run.make(100);
  for (Trial& one : run.all()) one.prefer(3);
  for (Trial& one : run.all()) one.prefer(4);  // there is no such candidate
  run.make(100);
  CHECK(run.first().in_use() == 3);
  CHECK(run.served[3] == 100);
  job.share = one_percent;
  Run decided(job);
  decided.make(20'000);
  REQUIRE(decided.first().trials() > 0);
  for (Trial& one : decided.all()) one.prefer(3);
  CHECK(decided.first().in_use() == 2);

  job.candidates = 1;
  Run watching(job);
  watching.make(20'000);
  CHECK(watching.exchanges > 10);
  CHECK(watching.first().trials() == 0);
}

}  // namespace papaya::tuning
