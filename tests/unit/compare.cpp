// papaya compare: known ratios are found, and no difference is none.
#include "profiler/analysis/compare.hpp"

#include <cmath>
#include <random>

#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

using report::Comparison;
using report::Outcome;
using report::RunSamples;
using support::Record;

const report::RowKey key{false, "MPI_Allreduce", "up to 1 KiB"};

// Calls of about `inside_ns`, of which `waiting_ns`, each like the one before it.
RunSamples run_of(std::size_t calls, double inside_ns, double waiting_ns, double correlation, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, 0.2 * std::sqrt(1 - correlation * correlation));
  RunSamples run;
  run.facts = {{"program", "app"}, {"ranks", "4"}};
  report::Samples& samples = run.rows[key];
  double level = std::normal_distribution<double>(0, 0.2)(random);
  for (std::size_t i = 0; i < calls; ++i) {
    level = correlation * level + noise(random);
    const double factor = std::max(0.05, 1 + level);
    samples.inside_ns.push_back(inside_ns * factor);
    samples.waiting_ns.push_back(waiting_ns * factor);
    samples.excess_ns.push_back((inside_ns - waiting_ns) * factor);
    run.run_ns += 2 * inside_ns * factor;
  }
  return run;
}

Comparison compare_one(const RunSamples& before, const RunSamples& after) {
  return report::compare({&before, 1}, {&after, 1});
}

TEST_CASE("compare: a known ratio is inside the interval, and faster or slower") {
  for (const double ratio : {0.5, 0.9, 1.15, 3.0}) {
    const Comparison comparison =
        compare_one(run_of(2000, 10'000, 6000, 0.5, 3), run_of(2000, 10'000 * ratio, 6000 * ratio, 0.5, 4));
    REQUIRE(comparison.rows.size() == 1);
    const report::Change& inside = comparison.rows[0].inside;
    CHECK(inside.ratio == Approx(ratio).epsilon(0.05));
    CHECK(inside.low < ratio);
    CHECK(inside.high > ratio);
    CHECK(inside.high - inside.low < 0.2 * ratio);
    const Outcome expected = ratio < 1 ? Outcome::faster : Outcome::slower;
    CHECK(inside.judgement.outcome == expected);
    CHECK(comparison.rows[0].waiting.judgement.outcome == expected);
    CHECK(comparison.rows[0].excess.judgement.outcome == expected);
    CHECK(comparison.collectives.judgement.outcome == expected);
    CHECK(comparison.verdict.starts_with(ratio < 1 ? "FASTER: " : "SLOWER: "));
    CHECK(comparison.run_time.judgement.outcome == Outcome::unclear);  // one run each
  }
}

TEST_CASE("compare: only what changed is faster") {
  // The same waiting, half the excess.
  const Comparison comparison = compare_one(run_of(20'000, 10'000, 6000, 0, 3), run_of(20'000, 8000, 6000, 0, 4));
  CHECK(comparison.rows[0].inside.judgement.outcome == Outcome::faster);
  CHECK(comparison.rows[0].waiting.judgement.outcome == Outcome::same);
  CHECK(comparison.rows[0].excess.judgement.outcome == Outcome::faster);
  CHECK(comparison.rows[0].excess.judgement.reason.ends_with(", all below 1"));
  // Half of an excess that is one percent of the time: sure, and next to nothing.
  const Comparison little = compare_one(run_of(20'000, 10'000, 9900, 0, 3), run_of(20'000, 9950, 9900, 0, 4));
  CHECK(little.rows[0].inside.judgement.outcome == Outcome::same);
  CHECK(little.rows[0].excess.judgement.outcome == Outcome::faster);
  CHECK(little.rows[0].excess.judgement.reason.ends_with(", all below 1; 0.5 % of the time inside"));
}

TEST_CASE("compare: no difference is none, also where calls are like those before them") {
  for (const double correlation : {0.0, 0.6, 0.9}) {
    int told = 0;
    constexpr unsigned trials = 100;
    for (unsigned trial = 0; trial < trials; ++trial) {
      const Comparison comparison = compare_one(run_of(1000, 10'000, 6000, correlation, 100 + 2 * trial),
                                                run_of(1000, 10'000, 6000, correlation, 101 + 2 * trial));
      const report::Change& inside = comparison.rows[0].inside;
      told += inside.low > 1 || inside.high < 1;
    }
    // 5 in 100 are due to a 95 % interval; without blocks the most correlated ones would be told apart in half of the
    // trials.
    INFO("correlation " << correlation << ": " << told);
    CHECK(told <= 15);
  }
  // The same either way; but only of many calls it can be said.
  const RunSamples few = run_of(500, 10'000, 6000, 0.5, 7);
  const Comparison unclear = compare_one(few, few);
  CHECK(unclear.rows[0].inside.ratio == Approx(1));
  CHECK(unclear.rows[0].inside.judgement.outcome == Outcome::unclear);
  CHECK(unclear.rows[0].inside.judgement.reason.ends_with(", too wide"));
  CHECK(unclear.verdict.starts_with("UNCLEAR: "));
  const RunSamples many = run_of(20'000, 10'000, 6000, 0.5, 7);
  const Comparison comparison = compare_one(many, many);
  CHECK(comparison.rows[0].inside.judgement.outcome == Outcome::same);
  CHECK(comparison.rows[0].inside.judgement.reason.ends_with("within 2 %"));
  CHECK(comparison.verdict.starts_with("SAME: "));
  CHECK(comparison.algorithms.empty());
  CHECK(comparison.settings.empty());
  CHECK(comparison.facts.empty());
}

TEST_CASE("compare: less than two percent is no change, however sure") {
  const RunSamples before = run_of(20'000, 10'000, 6000, 0, 8);
  RunSamples after = before;
  for (double& ns : after.rows[key].inside_ns) ns *= 1.015;
  CHECK(compare_one(before, after).rows[0].inside.judgement.outcome == Outcome::same);
  for (double& ns : after.rows[key].inside_ns) ns *= 1.02;
  CHECK(compare_one(before, after).rows[0].inside.judgement.outcome == Outcome::slower);
}

TEST_CASE("compare: too few calls have no interval") {
  const Comparison comparison = compare_one(run_of(9, 10'000, 6000, 0, 1), run_of(9, 1000, 600, 0, 2));
  CHECK(comparison.rows[0].inside.judgement.outcome == Outcome::unclear);
  CHECK(std::isnan(comparison.rows[0].inside.low));
  CHECK(comparison.rows[0].inside.judgement.reason == "fewer than 10 calls");
  CHECK(comparison.run_time.judgement.reason == "one run on a side");
  CHECK(comparison.verdict == "UNCLEAR: there are too few calls to tell.");
}

TEST_CASE("compare: several runs on each side are Welch's") {
  const auto runs = [](std::initializer_list<double> seconds) {
    std::vector<RunSamples> all;
    for (const double s : seconds) {
      RunSamples run = run_of(100, s * 1e6, s * 5e5, 0, 1);
      run.run_ns = s * 1e9;
      all.push_back(std::move(run));
    }
    return all;
  };
  // Logarithms 0 and +-0.1 against the same less 0.5: standard errors 0.1/sqrt(3) each, 4 degrees of freedom, t
  // = 2.776.
  const auto around = [&](double log) { return runs({std::exp(log - 0.1), std::exp(log), std::exp(log + 0.1)}); };
  const Comparison comparison = report::compare(around(0), around(-0.5));
  const double half = 2.776 * 0.1 * std::sqrt(2.0 / 3);
  CHECK(std::log(comparison.run_time.ratio) == Approx(-0.5));
  CHECK(std::log(comparison.run_time.low) == Approx(-0.5 - half).epsilon(0.01));
  CHECK(std::log(comparison.run_time.high) == Approx(-0.5 + half).epsilon(0.01));
  CHECK(comparison.run_time.judgement.outcome == Outcome::faster);
  CHECK(comparison.rows[0].inside.judgement.outcome == Outcome::faster);
  CHECK(comparison.verdict.starts_with("FASTER: the run"));
  // Runs that differ as much among themselves as the sides do.
  CHECK(report::compare(around(0), around(-0.1)).run_time.judgement.outcome == Outcome::unclear);
}

TEST_CASE("compare: from the files of runs") {
  const auto run = [](double excess_ns, int ranks, std::uint8_t algorithm) {
    auto all = support::records(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      Record& record = all[static_cast<std::size_t>(rank)];
      record.capacity = 64;
      const std::uint64_t site = record.add_call_site({{"/bin/app", 0x100}});
      for (std::uint64_t call = 0; call < 20; ++call) {
        const double base = 1e6 * static_cast<double>(call);
        trace::Event& event =
            record.add_call(Collective::allreduce, call, base + 1000 * rank,
                            base + 1000 * (ranks - 1) + excess_ns * (1 + 0.01 * static_cast<double>(call % 3)));
        event.call_site = site;
        event.algorithm = algorithm;
        ++record.algorithms[algorithm].calls[index_of(Collective::allreduce)];
      }
      record.finalize(3e7);
    }
    return report::samples_of(support::load(all), [](const auto&) {});
  };
  const RunSamples native = run(10'000, 2, 0);
  const RunSamples flat = run(4000, 2, 1);
  REQUIRE(native.rows.size() == 2);  // by size and by call site
  CHECK(native.rows.begin()->second.waiting_ns.front() == Approx(500));
  CHECK(native.rows.begin()->second.excess_ns.front() == Approx(10'000));
  CHECK(native.run_ns == Approx(3e7));
  const Comparison comparison = compare_one(native, flat);
  REQUIRE(comparison.rows.size() == 2);
  for (const report::ComparedRow& row : comparison.rows) {
    CHECK(row.calls_before == 20);
    CHECK(row.excess.ratio == Approx(0.4).epsilon(0.01));
    CHECK(row.excess.judgement.outcome == Outcome::faster);
    CHECK(row.waiting.judgement.outcome == Outcome::same);
  }
  REQUIRE(comparison.algorithms.size() == 1);
  CHECK(comparison.algorithms[0].before == "native 100 %");
  CHECK(comparison.algorithms[0].after == "flat 100 %");
  // Other ranks: said, and compared all the same.
  const Comparison other = compare_one(native, run(10'000, 3, 0));
  CHECK(other.rows.size() == 2);
  CHECK(std::any_of(other.notes.begin(), other.notes.end(), [](const std::string& note) {
    return note.find("different numbers of ranks: 2 before, 3 after") != note.npos;
  }));
}

TEST_CASE("compare: what only one side has is listed, settings that differ too") {
  RunSamples before = run_of(20, 10'000, 6000, 0, 1);
  RunSamples after = before;
  before.settings = {{"PAPAYA_WAIT", "auto"}, {"PAPAYA_LOG", "warn"}};
  after.settings = {{"PAPAYA_WAIT", "spin"}, {"PAPAYA_LOG", "warn"}};
  after.rows[{true, "MPI_Bcast", "main"}] = after.rows[key];
  const Comparison comparison = compare_one(before, after);
  CHECK(comparison.rows.size() == 1);
  CHECK(comparison.only_before.empty());
  REQUIRE(comparison.only_after.size() == 1);
  CHECK(comparison.only_after[0].name == "MPI_Bcast");
  REQUIRE(comparison.settings.size() == 1);
  CHECK(comparison.settings[0].name == "PAPAYA_WAIT");
  CHECK(comparison.settings[0].after == "spin");
}

}  // namespace
}  // namespace papaya
