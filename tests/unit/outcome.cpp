// The interval of a median holds it as often as it says, and each word has its planted case.
#include "profiler/analysis/outcome.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "tests/catch.hpp"

namespace papaya::report {
namespace {

using Draw = std::function<double(std::mt19937_64&)>;

// How many of 1000 intervals of so many values hold `median`.
int held(std::size_t values, double median, const Draw& draw, bool few = false) {
  std::mt19937_64 random(values);
  int count = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    std::vector<double> drawn(values);
    for (double& value : drawn) value = draw(random);
    const auto interval = few ? interval_of_few(drawn) : interval_of_median(drawn);
    REQUIRE(interval);
    count += interval->low <= median && median <= interval->high ? 1 : 0;
  }
  return count;
}

TEST_CASE("outcome: the interval of a median holds it in 95 of 100 cases, whatever the distribution") {
  const Draw skewed = [](std::mt19937_64& random) { return std::lognormal_distribution<double>(0, 1)(random); };
  // A call in ten meets another process.
  const Draw disturbed = [](std::mt19937_64& random) {
    const double quiet = std::exponential_distribution<double>(1)(random);
    return random() % 10 == 0 ? quiet + 100 : quiet;
  };
  for (const std::size_t values : {6, 10, 20, 101}) {
    INFO(values);
    // At least 950; 14 less are two standard deviations of such a count.
    CHECK(held(values, 1, skewed) >= 936);
    CHECK(held(values, std::log(9.0 / 4), disturbed) >= 936);
  }
  CHECK(held(5000, 1, skewed) >= 936);
  // Not because it is endless: of 20 values it leaves out 5 at each end, as tables have it.
  std::vector<double> twenty;
  for (int i = 20; i > 0; --i) twenty.push_back(i);
  CHECK(interval_of_median(twenty) == Interval{6, 15});
  CHECK(interval_of_median({1, 2, 3, 4, 5, 6}) == Interval{1, 6});
  CHECK_FALSE(interval_of_median({1, 2, 3, 4, 5}));
}

TEST_CASE("outcome: values of one turn of the benchmark are no independent ones") {
  // Rounds of ten values that have half of their variance in common: of all values together it would be wrong.
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(0, 1);
  int by_round = 0, by_value = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    std::vector<double> all, medians;
    for (int round = 0; round < 12; ++round) {
      const double level = normal(random);
      std::vector<double> values(9);
      for (double& value : values) all.push_back(value = level + normal(random));
      std::sort(values.begin(), values.end());
      medians.push_back(values[4]);
    }
    const auto holds = [](const std::optional<Interval>& one) { return one->low <= 0 && one->high >= 0 ? 1 : 0; };
    by_round += holds(interval_of_median(medians));
    by_value += holds(interval_of_median(all));
  }
  CHECK(by_round >= 936);
  CHECK(by_value < 800);
}

TEST_CASE("outcome: an interval of a few launches") {
  const Draw skewed = [](std::mt19937_64& random) { return std::lognormal_distribution<double>(0, 0.3)(random); };
  for (const std::size_t launches : {2, 3, 5}) CHECK(held(launches, 1, skewed, true) >= 936);
  const std::vector<double> three = {std::exp(0.9), std::exp(1.0), std::exp(1.1)};
  CHECK(std::log(interval_of_few(three)->high) == Approx(1 + 4.303 * 0.1 / std::sqrt(3)));
  CHECK(interval_of_few(std::vector<double>{1, 2, 3, 4, 5, 6}) == Interval{1, 6});
  CHECK_FALSE(interval_of_few(std::vector<double>{1}));
  CHECK_FALSE(interval_of_few(std::vector<double>{0, 1}));
}

TEST_CASE("outcome: four words, each for its reason") {
  const auto word = [](double low, double high) {
    return std::string(name_of(judge(Interval{low, high}, 0.05).outcome));
  };
  CHECK(word(0.98, 1.03) == "SAME");
  CHECK(word(0.97, 0.99) == "SAME");  // however sure
  CHECK(word(0.80, 0.98) == "FASTER");
  CHECK(word(1.01, 1.30) == "SLOWER");
  CHECK(word(0.90, 1.01) == "UNCLEAR");
  CHECK(word(0.99, 1.06) == "UNCLEAR");
  CHECK(judge(std::nullopt, 0.05).outcome == Outcome::unclear);
  CHECK(judge(std::nullopt, 0.05).reason == "too few values");
  CHECK(judge(Interval{0.98, 1.03}, 0.05).reason == "0.98 to 1.03, within 5 %");
  CHECK(judge(Interval{0.8, 0.98}, 0.05).reason == "0.80 to 0.98, all below 1");
  CHECK(judge(Interval{0.001, 0.002}, 0.05).reason == "<0.01, all below 1");
  CHECK(judge(Interval{1.01, 1.3}, 0.05).reason == "1.01 to 1.30, all above 1");
  CHECK(judge(Interval{0.9, 1.2}, 0.025).reason == "0.90 to 1.20, too wide");
}

}  // namespace
}  // namespace papaya::report
