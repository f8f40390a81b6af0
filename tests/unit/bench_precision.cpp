// How sure a row of the benchmark is, when it stops, what it says of native, and what several launches say together.
#include "tests/catch.hpp"
#include "tools/bench/combine.hpp"
#include "tools/bench/output.hpp"
#include "tools/bench/precision.hpp"
#include "tools/bench/statistics.hpp"

namespace papaya::bench {
namespace {

using report::Outcome;

// Turns of three values around these.
Turns around(const std::vector<double>& middles) {
  Turns turns;
  for (const double middle : middles) turns.push_back({middle - 0.5, middle, middle + 4});
  return turns;
}

TEST_CASE("bench: the interval is that of the turns' medians") {
  const Turns turns = around({10, 11, 10, 12, 10, 10});
  CHECK(medians_of(turns) == std::vector<double>{10, 11, 10, 12, 10, 10});
  CHECK(interval_of(turns) == Interval{10, 12});
  CHECK(half_width_of(turns) == Approx(1 / median(values_of(turns))));
  CHECK_FALSE(interval_of(around({10, 10, 10, 10, 10})));
  CHECK_FALSE(half_width_of(around({0, 0, 0, 0, 0, 0})));
  // A row that shows its median shows it inside.
  const Interval wide = *interval_of({{1, 9, 9}, {1, 1, 9}, {1, 1, 9}, {1, 1, 9}, {1, 1, 9}, {1, 1, 9}});
  CHECK((wide.low <= 1 && wide.high >= 9));
}

TEST_CASE("bench: ratios are of the same rounds") {
  // Both slow down alike: native's later turns are no measure of the early ones.
  const std::vector<double> native = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<double> own = {0.5, 1, 1.5, 2, 2.5, 3};
  const std::vector<double> ratios = ratios_of(own, native);
  CHECK(ratios == std::vector<double>(6, 0.5));
  CHECK(interval_of_ratios(ratios, 0.5) == Interval{0.5, 0.5});
  CHECK(interval_of_ratios(ratios, 0.6) == Interval{0.5, 0.6});
  CHECK(ratios_of({1, 2}, {0, 1}) == std::vector<double>{2});
}

TEST_CASE("bench: samples that are too many are thinned alike in all turns") {
  const Turns turns = {{1, 2, 3, 4, 5, 6}, {7, 8, 9, 10, 11, 12}};
  CHECK(thinned(turns, 100) == turns);
  CHECK(thinned(turns, 4) == Turns{{1, 4}, {7, 10}});
  CHECK(values_of(thinned(turns, 0)).empty());
  CHECK(thinned({}, 5).empty());
}

// Rounds of `us` a turn until all rows have stopped; the half widths are always these.
std::vector<int> rounds_until(Progression& rows, const std::vector<std::optional<double>>& widths, double us) {
  std::vector<int> rounds(widths.size(), 0);
  for (int round = 0; rows.goes_on() && round < 100; ++round) {
    for (std::size_t i = 0; i < widths.size(); ++i)
      if (rows.goes_on(i)) {
        rows.turn(i, us);
        ++rounds[i];
      }
    rows.decide(widths);
  }
  return rounds;
}

TEST_CASE("bench: a row stops when it is sure, has had its time, or its turns") {
  const Limits limits{.half_width = 0.02, .row_us = 1000, .rounds = 20};
  Progression sure(3, limits);
  CHECK(rounds_until(sure, {0.01, 0.01, 0.5}, 100) == std::vector<int>{10, 6, 10});
  CHECK(sure.stop_of(1) == Stop::narrow);
  CHECK(sure.stop_of(2) == Stop::time);
  CHECK(sure.stop_of(0) == Stop::narrow);  // it took part for the others' sake
  Progression quick(2, limits);
  CHECK(rounds_until(quick, {0.5, 0.5}, 10) == std::vector<int>{20, 20});
  CHECK(quick.stop_of(1) == Stop::rounds);
  // What others leave of the time is native's, and no more than that.
  Progression slow(2, limits);
  CHECK(rounds_until(slow, {std::nullopt, 0.5}, 1000) == std::vector<int>{6, 6});
  CHECK(slow.stop_of(0) == Stop::time);
  Progression counted(2, {.half_width = 1, .row_us = 1, .rounds = 3, .counted = true});
  CHECK(rounds_until(counted, {0, 0}, 1000) == std::vector<int>{3, 3});
  CHECK(counted.stop_of(0) == Stop::rounds);
}

TEST_CASE("bench: all ranks stop by what one has decided") {
  Progression root(2, {.row_us = 10}), other(2, {.row_us = 10});
  for (int round = 0; round < 6; ++round)
    for (std::size_t row = 0; row < 2; ++row) {
      root.turn(row, 100);
      other.turn(row, 0.1);  // its own clock would have let it go on
    }
  root.decide({0.5, 0.001});
  CHECK(other.goes_on());
  other.take(root.decisions());
  CHECK_FALSE(other.goes_on());
  CHECK(other.stop_of(1) == Stop::narrow);
}

TEST_CASE("bench: the overlap is OSU's") {
  CHECK(overlap_percent(10, 10, 10) == 100);
  CHECK(overlap_percent(10, 10, 15) == 50);
  CHECK(overlap_percent(10, 10, 20) == 0);
  CHECK(overlap_percent(10, 10, 35) == 0);  // it made the computation longer
  CHECK(overlap_percent(0, 0, 1) == 0);
}

// One launch: native takes 10, the algorithm `ratio` of it.
Result launch(double ratio, double native_us = 10) {
  Result result;
  result.ranks = 4;
  result.mpi = "MPI";
  result.pattern = "none";
  result.mode = "tight";
  result.samples = 100;
  for (const double us : {native_us, native_us * ratio}) {
    Row row;
    row.collective = Collective::allreduce;
    row.algorithm = result.rows.empty() ? "native" : "ring";
    row.bytes = 8;
    row.iterations = 60;
    row.values_us = Turns(6, {us - 0.1, us, us + 1});
    row.excess_us = row.inside_us = row.excess_max_us = row.excess_mean_us = summarize(values_of(row.values_us));
    row.ratio_to_native = us / native_us;
    row.stop = Stop::narrow;
    result.rows.push_back(row);
  }
  return result;
}

Row combined_row(const std::vector<double>& ratios) {
  std::vector<Result> launches;
  std::string problem;
  for (const double ratio : ratios) {
    // As they come from files.
    CHECK(read_launch(json_text(launch(ratio)), launches.emplace_back(), problem));
  }
  const Result all = combined(launches, 5, problem);
  CHECK(problem == "");
  CHECK(all.launches == static_cast<int>(ratios.size()));
  return all.rows.at(1);
}

TEST_CASE("bench: what makes launches differ is in the interval of several") {
  const Row alike = combined_row({0.80, 0.81, 0.79});
  CHECK(alike.judgement->outcome == Outcome::faster);
  CHECK(*alike.ratio_to_native == Approx(0.8));
  CHECK(alike.launches_us.size() == 3);
  CHECK(alike.launches_us.at(1) == Approx(8.1));
  CHECK(alike.iterations == 180);
  CHECK(alike.excess_us.min == Approx(7.8));
  CHECK(alike.excess_us.max == Approx(9.1));
  CHECK(alike.values_us.size() == 18);
  // Each of them alone is as sure as those above.
  const Row different = combined_row({0.8, 1.3, 0.6});
  CHECK(different.judgement->outcome == Outcome::unclear);
  CHECK((different.interval_us->low < 6 && different.interval_us->high > 13));
  CHECK(combined_row({1.001, 1.0, 0.999}).judgement->outcome == Outcome::same);
  CHECK(combined_row({1.3, 1.31, 1.32}).judgement->outcome == Outcome::slower);
}

// One launch of a weakly consistent collective: native takes 10 on average, a call with slack 2 `ratio` of it.
Result weak_launch(double ratio, int slack = 2) {
  Result result = launch(ratio);
  result.mode = "free";
  result.compute_us = 200;
  for (Row& row : result.rows) {
    row.weak = WeakFigures{.collective = "ssp_allreduce"};
    if (row.algorithm == "native") {
      row.weak->mean_ratio = 1;
      continue;
    }
    row.algorithm = "ssp_hypercube";
    row.ratio_to_native = 3;  // of the medians, which say little of what now and then a call waits
    row.weak->slack = slack;
    row.weak->mean_ratio = ratio;
    row.weak->calls_per_second = 1000 * ratio;
    row.weak->waited_us = Summary{ratio, ratio, ratio, 2 * ratio, 0};
    row.weak->staleness_mean = row.weak->staleness_max = ratio;
    row.weak->share_least = ratio;
  }
  return result;
}

TEST_CASE("bench: launches of weakly consistent collectives are combined") {
  std::vector<Result> launches;
  std::string problem;
  for (const double ratio : {0.3, 0.31, 0.29}) {
    CHECK(read_launch(json_text(weak_launch(ratio)), launches.emplace_back(), problem));
    CHECK(problem == "");
  }
  const Result all = combined(launches, 5, problem);
  CHECK(problem == "");
  REQUIRE(all.rows.size() == 2);
  const Row& row = all.rows.at(1);
  CHECK(row.judgement->outcome == Outcome::faster);
  CHECK((row.ratio_interval->low < 0.29 && row.ratio_interval->high < 0.4));
  CHECK(*row.ratio_to_native == Approx(3));
  REQUIRE(row.weak);
  CHECK(row.weak->collective == "ssp_allreduce");
  CHECK(row.weak->slack == 2);
  CHECK(*row.weak->mean_ratio == Approx(0.3));
  CHECK(*row.weak->calls_per_second == Approx(300));
  CHECK(row.weak->waited_us->mean == Approx(0.3));
  CHECK(row.weak->waited_us->max == Approx(0.62));
  CHECK(row.weak->staleness_mean == Approx(0.3));
  CHECK(row.weak->staleness_max == Approx(0.31));
  CHECK(row.weak->share_least == Approx(0.29));
  CHECK(all.rows.front().weak->waited_us == std::nullopt);
  // With another slack, or after another computation, it is another measurement.
  CHECK(combined({weak_launch(0.3), weak_launch(0.3, 4)}, 5, problem).rows.size() == 1);
  Result other = weak_launch(0.3);
  other.compute_us = 300;
  combined({weak_launch(0.3), other}, 5, problem);
  CHECK(problem == "compute: 200 and 300");
}

TEST_CASE("bench: what is no launch of the same measurement is not combined") {
  Result other = launch(1), result;
  std::string problem;
  other.ranks = 8;
  combined({launch(1), other}, 5, problem);
  CHECK(problem == "ranks: 4 and 8");
  problem.clear();
  other = launch(1);
  for (Row& row : other.rows) row.bytes = 16;
  combined({launch(1), other}, 5, problem);
  CHECK(problem == "they have no row in common");
  for (const char* const text : {"", "[]", "{\"ranks\": \"four\"}", "{\"rows\": []}"}) {
    problem.clear();
    CHECK_FALSE(read_launch(text, result, problem));
    CHECK(problem == "it is no file of papaya bench --json of this version");
  }
  problem.clear();
  CHECK_FALSE(read_launch(json_text(combined({launch(1), launch(1)}, 5, problem)), result, problem));
  CHECK(problem == "it is already made of several launches");
}

}  // namespace
}  // namespace papaya::bench
