#include <algorithm>
#include <cmath>

#include "tests/catch.hpp"
#include "tools/bench/patterns.hpp"

namespace papaya::bench {

namespace {
std::vector<double> all(Pattern pattern, int ranks, std::uint64_t call = 0, std::uint64_t seed = 1) {
  std::vector<double> result;
  for (int rank = 0; rank < ranks; ++rank) result.push_back(lateness(pattern, rank, ranks, call, seed));
  return result;
}
using Values = std::vector<double>;
}  // namespace

TEST_CASE("arrival patterns") {
  CHECK(all(Pattern::none, 3) == Values{0, 0, 0});
  CHECK(all(Pattern::ascending, 3) == Values{0, 0.5, 1});
  CHECK(all(Pattern::descending, 3) == Values{1, 0.5, 0});
  CHECK(all(Pattern::first_late, 3) == Values{1, 0, 0});
  CHECK(all(Pattern::last_late, 3) == Values{0, 0, 1});
  CHECK(all(Pattern::half_late, 4) == Values{0, 0, 1, 1});
  CHECK(all(Pattern::half_late, 5) == Values{0, 0, 0, 1, 1});
  CHECK(all(Pattern::straggler, 3, 4) == Values{0, 1, 0});
  const Values workers = all(Pattern::workers, 3, 4);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(workers[rank] >= 0.25 * static_cast<double>(rank));
    CHECK(workers[rank] < 0.25 * static_cast<double>(rank) + 0.5);
  }
  CHECK(workers != all(Pattern::workers, 3, 5));
  for (const PatternRow& row : pattern_rows()) CHECK(name_of(row.pattern) == row.name);
}

TEST_CASE("no pattern leaves the skew, on any number of ranks") {
  for (const PatternRow& row : pattern_rows())
    for (const int ranks : {1, 2, 3, 8})
      for (std::uint64_t call = 0; call < 50; ++call)
        for (const double value : all(row.pattern, ranks, call)) CHECK((value >= 0 && value <= 1));
}

TEST_CASE("random patterns repeat with their seed and have their mean") {
  CHECK(all(Pattern::random, 4, 7, 3) == all(Pattern::random, 4, 7, 3));
  CHECK(all(Pattern::random, 4, 7, 3) != all(Pattern::random, 4, 8, 3));
  CHECK(all(Pattern::random, 4, 7, 3) != all(Pattern::random, 4, 7, 4));
  double uniform_sum = 0, exponential_sum = 0;
  constexpr int calls = 20000;
  for (int call = 0; call < calls; ++call) {
    uniform_sum += lateness(Pattern::random, 1, 4, static_cast<std::uint64_t>(call), 1);
    exponential_sum += lateness(Pattern::exponential, 1, 4, static_cast<std::uint64_t>(call), 1);
  }
  CHECK(uniform_sum / calls == Approx(0.5).margin(0.01));
  // Cut at four means: (1 - e^-4) / 4.
  CHECK(exponential_sum / calls == Approx((1 - std::exp(-4)) / 4).margin(0.01));
}

TEST_CASE("a replay") {
  Replay replay;
  std::string problem;
  REQUIRE(parse_replay("# us\n10 12.5 40\n\n0,-5,0 # early\n", 3, replay, problem));
  CHECK(replay.calls() == 2);
  CHECK(replay.offset_us(0, 0) == 0);
  CHECK(replay.offset_us(1, 0) == 2.5);
  CHECK(replay.offset_us(1, 1) == 0);
  CHECK(replay.offset_us(2, 3) == 5);
  CHECK(replay.largest_us() == 30);
}

TEST_CASE("a replay that cannot be used says why") {
  Replay replay;
  std::string problem;
  CHECK_FALSE(parse_replay("1 2\n", 3, replay, problem));
  CHECK(problem == "line 1 has 2 arrivals, but there are 3 ranks");
  CHECK_FALSE(parse_replay("1 2 3\n1 2x 3\n", 3, replay, problem));
  CHECK(problem.find("line 2") == 0);
  CHECK_FALSE(parse_replay("1 nan 3\n", 3, replay, problem));
  CHECK_FALSE(parse_replay("# nothing\n", 3, replay, problem));
  CHECK(problem == "has no call in it");
}

}  // namespace papaya::bench
