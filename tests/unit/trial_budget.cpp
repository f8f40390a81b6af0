// Online selection: when trying may begin, and what it may cost.
#include "tuning/trial_budget.hpp"

#include <cstdint>

#include "tests/catch.hpp"
#include "tests/unit/support/trial_run.hpp"

namespace papaya::tuning {

using support::costs;
using support::Job;
using support::Run;

TEST_CASE("a trial: begins as soon as what a set-up has been measured to take allows") {
  Job job;
  job.guessed_set_up_ns = 1'000'000'000;
  job.cost = costs({9'000, 30'000, 3'000, 100'000});
  SECTION("by nobody") {}
  SECTION("by one rank") {
    job.set_up_ns = 100'000;
  }
  Run run(job);
  run.make(2'000);
  CHECK((run.first().trials() > 0) == (job.set_up_ns != 0));
}

TEST_CASE("a trial: what trying costs stays within its share of the run") {
  for (const std::int64_t computing : {1'000, 20'000, 1'000'000}) {
    Job job;
    job.in_use = 2;
    job.computing_ns = computing;
    job.cost = costs({9'000, 30'000, 3'000, 100'000});
    Run run(job);
    run.make(50'000);
    CHECK(run.first().trials() > 0);
    const double share = static_cast<double>(run.lost_ns + run.exchanged_ns) / static_cast<double>(run.now());
    CHECK(share < 0.011);
  }
}

TEST_CASE("a trial: who calls rarely pays nothing") {
  Job job;
  job.cost = costs({9'000, 5'000, 3'000, 100'000});
  Run run(job);
  run.make(Trial::first_look);
  CHECK(run.exchanges == 0);
  CHECK(run.served[0] == Trial::first_look);
}

TEST_CASE("a trial: nothing is tried while the run is too short for what it would cost") {
  Job job;
  job.begin_ns = 1'000'000;
  job.cost = costs({9'000, 5'000, 3'000, 100'000});
  Run run(job);
  run.make(300);
  CHECK(run.served[0] == 300);
  // 4 sets of calls and set-ups, about 2 ms, are a hundredth of 0.2 s.
  run.make(20'000);
  CHECK(run.first().in_use() == 2);
}

TEST_CASE("a trial: none begins where exchanging what was measured would take too long") {
  Job job;
  job.exchange_ns = 20'000'000;
  job.cost = costs({9'000, 5'000, 3'000, 100'000});
  Run run(job);
  run.make(5'000);
  CHECK(run.first().trials() == 0);
  CHECK(run.served[0] == 5'000);
  CHECK(run.exchanges <= 2);
}

TEST_CASE("a trial that lacks candidates: they are admitted once the run is long enough for what that costs") {
  Job job;
  job.lacks_candidates = true;
  job.has_one_clock = false;
  job.exchange_ns = 100'000;
  job.computing_ns = 200'000;
  job.begin_ns = 0;
  job.cost = costs({50'000, 30'000, 20'000, 400'000});
  Run run(job);
  run.make(Trial::first_look_if_lacking);
  CHECK(run.exchanges == 0);
  run.make(100'000);
  // 20 ms and a trial are a hundredth of more than two seconds.
  CHECK(run.admitted > 2'000'000'000 / 250'000);
  CHECK(run.first().in_use() == 2);
  CHECK(static_cast<double>(run.exchanged_ns) / static_cast<double>(run.now()) < 0.012);
}

TEST_CASE("a trial that lacks candidates: nothing is prepared for calls that are a small part of the run") {
  Job job;
  job.lacks_candidates = true;
  job.has_one_clock = false;
  job.exchange_ns = 100'000;
  job.cost = costs({50'000, 30'000, 20'000, 400'000});
  job.begin_ns = 0;
  job.computing_ns = 60 * 50'000;
  SECTION("of the sixtieth part") {
    Run run(job);
    run.make(20'000);
    CHECK(run.admitted >= 0);
  }
  job.computing_ns = 200 * 50'000;
  SECTION("of the two-hundredth part") {
    Run run(job);
    run.make(20'000);
    CHECK(run.admitted < 0);
    CHECK(run.first().trials() == 0);
    CHECK(run.served[0] == 20'000);
  }
}

TEST_CASE("a trial: what other trials have lost counts") {
  Job job;
  job.cost = costs({9'000, 5'000, 3'000, 100'000});
  job.elsewhere_ns = 1'000'000'000;
  Run run(job);
  run.make(5'000);
  CHECK(run.first().trials() == 0);
}

TEST_CASE("a trial: what those under way are foreseen to lose counts, tenfold until their first round has ended") {
  Job job;
  job.cost = costs({9'000, 5'000, 3'000, 100'000});
  SECTION("to others") {
    job.foreseen_ns = 1'000'000'000;
    Run run(job);
    run.make(5'000);
    CHECK(run.first().trials() == 0);
  }
  SECTION("by itself") {
    Run run(job);
    const auto make_while = [&](auto&& holds) {
      for (int i = 0; i < 5'000 && holds(); ++i) run.make(1);
    };
    CHECK(run.first().foreseen_ns() == 0);
    make_while([&] { return !run.first().is_trying(); });
    const std::int64_t at_first = run.first().foreseen_ns();
    CHECK(at_first > 0);
    make_while([&] { return run.first().foreseen_ns() == at_first; });
    CHECK(run.first().is_trying());
    CHECK(10 * run.first().foreseen_ns() <= at_first);
    make_while([&] { return run.first().is_trying(); });
    CHECK(run.first().trials() == 1);
    CHECK(run.first().foreseen_ns() == 0);
  }
}

TEST_CASE("a trial: calls of what serves anyway lose nothing, however long some of them are") {
  Job job;
  job.in_use = 2;
  job.cost = [](std::size_t candidate, std::int64_t call) -> std::int64_t {
    constexpr std::int64_t usual[] = {3'500, 3'400, 3'000, 3'600};
    return candidate == 2 && call % 4 == 0 ? 3'000'000 : usual[candidate];
  };
  job.noise = 0;
  job.exchange_ns = 1'000;
  Run run(job);
  run.make(3'000);
  CHECK(run.first().trials() > 0);
  CHECK(run.first().spent_ns() < 1'000'000);
}

TEST_CASE("a trial: calls that are a small part of those that are followed wait for their part of what may be lost") {
  Job job;
  job.cost = costs({9'000, 5'000, 3'000, 100'000});
  job.begin_ns = 1'000'000'000;
  SECTION("half of the time") {
    job.others_ns = 9'000 * 1'000;
    Run run(job);
    run.make(1'000);
    CHECK(run.first().trials() > 0);
  }
  SECTION("a thousandth") {
    job.others_ns = 9'000'000 * std::int64_t{1'000};
    Run run(job);
    run.make(1'000);
    CHECK(run.first().trials() == 0);
    CHECK(run.served[0] == 1'000);
  }
}

TEST_CASE("a trial: the checks of many trials leave of what may be lost enough for trials") {
  constexpr std::int64_t many = 20;
  Job job;
  job.computing_ns = 100;
  job.cost = costs({900, 500, 300, 10'000});
  job.trials = many;
  Run run(job);
  run.make(200'000);
  CHECK(run.first().trials() > 0);
  const double share = static_cast<double>(many * run.exchanged_ns) / static_cast<double>(run.now());
  CHECK(share < 0.01);
}

}  // namespace papaya::tuning
