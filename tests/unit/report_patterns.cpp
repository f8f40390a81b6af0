// The pattern classes of call sites, on arrivals whose class is known.
#include <functional>
#include <random>
#include <vector>

#include "profiler/analysis/patterns_of_sites.hpp"
#include "tests/catch.hpp"

namespace papaya {
namespace {

using report::CallOfSite;
using report::PatternClass;

constexpr double message_ns = 1000;
constexpr double late_ns = 400 * message_ns;

// `last` gives the last rank of each call.
std::vector<CallOfSite> calls_of(int count, int ranks, const std::function<int(int)>& last, double worst_ns = late_ns) {
  std::vector<CallOfSite> calls;
  for (int i = 0; i < count; ++i) {
    const int who = last(i);
    calls.push_back({1, ranks, who, who + 100, worst_ns, report::imbalanced_factor * message_ns});
  }
  return calls;
}

TEST_CASE("patterns: balanced within ten messages, whoever is last") {
  const auto pattern = report::pattern_of(calls_of(
      500, 8, [](int) { return 3; }, 9 * message_ns));
  CHECK(pattern.pattern == PatternClass::balanced);
  CHECK_FALSE(pattern.predictability);
  CHECK(pattern.imbalanced == 0);
}

TEST_CASE("patterns: a persistent straggler, by its rank of the job") {
  const auto pattern = report::pattern_of(calls_of(50, 8, [](int) { return 3; }));
  CHECK(pattern.pattern == PatternClass::persistent);
  CHECK(pattern.straggler() == 103);
  CHECK(*pattern.predictability == Approx(1));
  CHECK(pattern.imbalanced == 50);
}

TEST_CASE("patterns: a straggler of each communicator") {
  std::minstd_rand random(7);
  std::vector<CallOfSite> calls;
  for (int i = 0; i < 80; ++i) {
    // On communicators 1 to 3 always the same rank, on the last one any.
    const int of = i % 4;
    const int who = of < 3 ? of : static_cast<int>(random() % 4);
    calls.push_back(
        {static_cast<std::uint64_t>(of) + 1, 4, who, 10 * of + who, late_ns, report::imbalanced_factor * message_ns});
  }
  const auto pattern = report::pattern_of(calls);
  CHECK(pattern.pattern == PatternClass::persistent);
  CHECK(pattern.straggling_ranks() == std::vector<std::int32_t>{0, 11, 22});
  CHECK(pattern.straggler() == -1);
  REQUIRE(pattern.stragglers.size() == 3);
  CHECK(pattern.stragglers[1].communicator == 2);
  CHECK(pattern.stragglers[1].imbalanced == 20);
  // The same rank on two communicators is one straggler.
  for (CallOfSite& call : calls) call.rank = 5;
  CHECK(report::pattern_of(calls).straggler() == 5);
}

TEST_CASE("patterns: a straggler at every twentieth call stands out of the noise of the others") {
  std::minstd_rand random(7);
  auto calls = calls_of(
      2000, 4, [&](int i) { return i % 20 == 0 ? 3 : static_cast<int>(random() % 3); }, 15 * message_ns);
  for (std::size_t i = 0; i < calls.size(); i += 20) calls[i].worst_ns = 10 * late_ns;
  const auto pattern = report::pattern_of(calls);
  CHECK(pattern.pattern == PatternClass::persistent);
  CHECK(pattern.straggler() == 103);
  CHECK(pattern.imbalanced == 100);
}

TEST_CASE("patterns: large messages do not hide the straggler of small ones") {
  auto calls = calls_of(
      90, 8, [](int i) { return i % 3 == 0 ? 3 : i % 8; }, 2 * message_ns);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (i % 3 == 0) calls[i].worst_ns = late_ns;
    if (i % 3 == 1) calls[i].least_ns = 50 * late_ns;
  }
  const auto pattern = report::pattern_of(calls);
  CHECK(pattern.pattern == PatternClass::persistent);
  CHECK(pattern.imbalanced == 30);
}

TEST_CASE("patterns: ranks take turns, by any step") {
  for (const int step : {1, 3, 7}) {
    CAPTURE(step);
    const auto pattern = report::pattern_of(calls_of(60, 8, [&](int i) { return i * step % 8; }));
    CHECK(pattern.pattern == PatternClass::rotating);
    CHECK(pattern.straggler() == -1);
    CHECK(*pattern.predictability == Approx(1));
  }
  CHECK(report::pattern_of(calls_of(60, 2, [](int i) { return i % 2; })).pattern == PatternClass::rotating);
}

TEST_CASE("patterns: some of the ranks take turns") {
  for (const std::vector<int>& turn : {std::vector<int>{0, 1}, {2, 5, 1}, {0, 0, 3, 3}, {1, 6, 1, 2}}) {
    CAPTURE(turn.size());
    const int length = static_cast<int>(turn.size());
    const auto pattern = report::pattern_of(calls_of(120, 8, [&](int i) { return turn[i % length]; }));
    CHECK(pattern.pattern == PatternClass::rotating);
    CHECK(pattern.straggler() == -1);
    CHECK(*pattern.predictability > 0.9);
  }
}

TEST_CASE("patterns: one rank for a while, then another") {
  const auto pattern = report::pattern_of(calls_of(200, 8, [](int i) { return i / 20 * 3 % 8; }));
  CHECK(pattern.pattern == PatternClass::drifting);
  CHECK(*pattern.predictability > 0.9);
  CHECK(*pattern.predictability < 1);
}

TEST_CASE("patterns: luck is not predictability") {
  for (const int ranks : {2, 3, 16, 1000}) {
    CAPTURE(ranks);
    std::mt19937 random(static_cast<unsigned>(ranks));
    const auto pattern =
        report::pattern_of(calls_of(400, ranks, [&](int) { return static_cast<int>(random() % ranks); }));
    CHECK(pattern.pattern == PatternClass::random);
    CHECK(*pattern.predictability < 0.15);
  }
}

TEST_CASE("patterns: half the calls foretold among many ranks are half predictable") {
  std::mt19937 random(1);
  const auto pattern = report::pattern_of(
      calls_of(1000, 1000, [&](int i) { return i % 10 < 7 ? 5 : static_cast<int>(random() % 1000); }));
  CHECK(pattern.pattern == PatternClass::persistent);
  CHECK(*pattern.predictability == Approx(0.7).margin(0.02));
}

TEST_CASE("patterns: each communicator has a sequence of its own") {
  // Rows of a grid, each with its straggler, their calls not in turn.
  std::vector<CallOfSite> calls;
  for (std::uint64_t row = 0; row < 4; ++row)
    for (int i = 0; i < 20; ++i)
      calls.push_back(
          {row, 4, static_cast<std::int32_t>(row), static_cast<std::int32_t>(5 * row), late_ns, 10 * message_ns});
  const auto pattern = report::pattern_of(calls);
  CHECK(pattern.pattern == PatternClass::persistent);
  CHECK(*pattern.predictability == Approx(1));
}

TEST_CASE("patterns: too few imbalanced calls tell nothing") {
  CHECK(report::pattern_of({}).pattern == PatternClass::unknown);
  const auto pattern = report::pattern_of(calls_of(9, 8, [](int) { return 3; }));
  CHECK(pattern.pattern == PatternClass::unknown);
  CHECK_FALSE(pattern.predictability);
  CHECK(pattern.imbalanced == 9);
  // Nor do many communicators with a call each.
  auto calls = calls_of(50, 8, [](int) { return 3; });
  for (std::size_t i = 0; i < calls.size(); ++i) calls[i].communicator = i;
  CHECK(report::pattern_of(calls).pattern == PatternClass::unknown);
}

}  // namespace
}  // namespace papaya
