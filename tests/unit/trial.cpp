// Online selection: who serves, when that changes, and what it may cost.
#include "tuning/trial.hpp"

#include <cstdint>
#include <utility>

#include "tests/catch.hpp"
#include "tests/unit/support/trial_run.hpp"

namespace papaya::tuning {

using support::costs;
using support::Job;
using support::one_percent;
using support::Run;

TEST_CASE("who is never set up is out after some rounds, and leaves its place to MPI") {
  Job job;
  job.share = 1'000'000;
  job.candidates = 3;
  job.in_use = 1;
  job.cost = [](std::size_t, std::int64_t) { return 5'000; };
  job.serves = [](std::size_t candidate, std::int64_t) { return candidate != 1; };
  Run run(job);
  run.make(2000);
  CHECK(run.first().trials() >= 1);
  CHECK(run.first().in_use() != 1);
  CHECK_FALSE(run.first().standing(1).is_left);
  CHECK_FALSE(run.first().standing(1).failed);
  CHECK(run.served[1] < 40 + 20 * run.first().trials());
}

TEST_CASE("a trial: the slowest choice gives way to the best within a hundredth of the calls") {
  for (const std::size_t wrong : {0, 1, 2, 3}) {
    Job job;
    job.in_use = wrong;
    job.cost = costs({9'000, 30'000, 3'000, 100'000});
    Run run(job);
    run.make(1'000);
    CHECK(run.first().in_use() == 2);
    run.make(99'000);
    CHECK(run.first().in_use() == 2);
    // After it was found, nothing but what may be lost is lost.
    CHECK(run.served[2] > 99'000);
  }
}

TEST_CASE("a trial across nodes: without one clock the best is found, and followed, whoever is late") {
  for (const std::int64_t spread : {500, 300'000}) {
    Job job;
    job.ranks = 5;
    job.has_one_clock = false;
    job.in_use = 1;
    job.computing_ns = 200'000;
    job.cost = [](std::size_t candidate, std::int64_t call) -> std::int64_t {
      constexpr std::int64_t before[] = {9'000, 30'000, 3'000, 100'000};
      constexpr std::int64_t after[] = {9'000, 4'000, 30'000, 100'000};
      return (call < 20'000 ? before : after)[candidate];
    };
    job.spread = [=](std::int64_t) { return spread; };
    Run run(job);
    run.make(20'000);
    CHECK(run.first().in_use() == 2);
    // What a call costs, not how long ranks are inside.
    CHECK(run.first().standing(2).median_ns < 4'000);
    run.make(5'000);
    CHECK(run.first().in_use() == 1);
    const double share = static_cast<double>(run.lost_ns + run.exchanged_ns) / static_cast<double>(run.now());
    CHECK(share < 0.05);
  }
}

TEST_CASE("a trial across nodes: of calls that ranks leave early the best by the time inside is found") {
  for (const std::int64_t spread : {500, 20'000}) {
    Job job;
    job.ranks = 5;
    job.has_one_clock = false;
    job.is_rooted = true;
    job.in_use = 0;
    job.computing_ns = 200'000;
    job.cost = costs({9'000, 30'000, 3'000, 100'000});
    job.spread = [=](std::int64_t call) { return call % 3 == 0 ? spread : 0; };
    Run run(job);
    run.make(20'000);
    CHECK(run.first().in_use() == 2);
    CHECK(run.first().changes() == 1);
    CHECK(run.first().seen().empty());  // who is late is not known
  }
}

TEST_CASE("a trial: the choice follows when another becomes the best, and when the pattern of arrivals changes") {
  Job job;
  SECTION("the cost of the one in use grows") {
    job.cost = [](std::size_t candidate, std::int64_t call) -> std::int64_t {
      constexpr std::int64_t before[] = {9'000, 4'000, 3'000, 20'000};
      constexpr std::int64_t after[] = {9'000, 4'000, 30'000, 20'000};
      return (call < 50'000 ? before : after)[candidate];
    };
  }
  SECTION("a straggler appears, which one of them does not mind") {
    job.cost = [](std::size_t candidate, std::int64_t call) -> std::int64_t {
      constexpr std::int64_t before[] = {9'000, 5'000, 3'000, 20'000};
      constexpr std::int64_t after[] = {9'000, 1'000, 3'000, 20'000};
      return (call < 50'000 ? before : after)[candidate];
    };
    job.spread = [](std::int64_t call) { return call < 50'000 ? 500 : 200'000; };
  }
  Run run(job);
  run.make(50'000);
  CHECK(run.first().in_use() == 2);
  run.make(3'000);
  CHECK(run.first().in_use() == 1);
  CHECK(run.first().changes() == 2);
}

TEST_CASE("a trial of a part of the calls begins with what serves, and has one of its own") {
  Job job;
  job.cost = costs({9'000, 5'000, 3'000, 100'000});
  Run run(job);
  run.make(10'000);
  REQUIRE(run.first().trials() > 0);
  REQUIRE(run.first().in_use() == 2);
  job.cost = costs({9'000, 1'000, 3'000, 100'000});
  Run part(job);
  for (Trial& one : part.all()) {
    one = run.first().part();
    CHECK(one.calls() == 0);
    CHECK(one.candidate() == 2);
    CHECK(one.slot() < 0);
    CHECK_FALSE(one.wants_exchange());
    CHECK(one.spent_ns() == 0);
  }
  part.make(Trial::first_look);
  CHECK(part.exchanges == 0);
  CHECK(part.served[2] == Trial::first_look);
  part.make(5'000);
  CHECK(part.first().trials() > run.first().trials());
  CHECK(part.first().in_use() == 1);
}

TEST_CASE("a trial: who sees each call is told of each, measured or not") {
  Trial trial({.candidates = 2, .share = one_percent});
  CHECK_FALSE(trial.is_noted());
  trial.note_all(true);
  CHECK(trial.is_noted());
  for (std::int64_t i = 0; i < Trial::first_look; ++i) trial.count_call();
  trial.note_all(false);
  CHECK(trial.slot() == 0);
  CHECK(trial.is_noted());
  while (!trial.wants_exchange()) trial.count_call();
  CHECK_FALSE(trial.is_noted());
}

TEST_CASE("a trial: among equals the one in use stays, and checks alone follow") {
  Job job;
  job.in_use = 1;
  job.noise = 0.2;
  job.cost = costs({5'000, 5'000, 5'000, 5'000});
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Run run(job, seed);
    run.make(20'000);
    CHECK(run.first().changes() == 0);
    CHECK(run.served[1] > 19'000);
  }
}

TEST_CASE("a trial: what disturbs some calls in a row puts nobody out of its place") {
  std::int64_t changes = 0;
  std::int64_t trials = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Job job;
    job.in_use = 1;
    job.share = 10 * one_percent;
    job.noise = 0.1;
    job.cost = [=](std::size_t candidate, std::int64_t call) -> std::int64_t {
      constexpr std::int64_t quiet[] = {5'100, 5'000, 5'200, 9'000};
      const std::uint64_t mixed = (static_cast<std::uint64_t>(call) / 6 + seed * 1'000) * 0x9e3779b97f4a7c15u;
      return quiet[candidate] * (mixed >> 63 == 0 ? 5 : 1);
    };
    Run run(job, static_cast<unsigned>(seed));
    run.make(30'000);
    changes += run.first().changes();
    trials += run.first().trials();
  }
  CHECK(trials > 1'000);
  CHECK(changes == 0);
}

TEST_CASE("a trial: MPI stays where nothing is quicker, and comes back when what was quicker is not any more") {
  Job job;
  job.cost = costs({3'000, 5'000, 4'000, 100'000});
  Run run(job);
  run.make(20'000);
  CHECK(run.first().in_use() == Trial::native);
  CHECK(run.first().changes() == 0);
  job.in_use = 3;
  Run other(job);
  other.make(1'000);
  CHECK(other.first().in_use() == Trial::native);
}

TEST_CASE("a trial: where ranks may leave early, the exchange waits for a call that they may not") {
  Job job;
  job.cost = costs({9'000, 5'000, 3'000, 100'000});
  job.meets = [](std::int64_t call) { return call % 500 == 499; };
  Run run(job);
  run.make(400);
  CHECK(run.exchanges == 0);
  CHECK(run.served[0] == 400);
  run.make(20'000);
  CHECK(run.first().in_use() == 2);
  job.meets = [](std::int64_t) { return false; };
  Run lonely(job);
  lonely.make(10'000);
  CHECK(lonely.exchanges == 0);
  CHECK(lonely.served[0] == 10'000);
}

TEST_CASE("a trial: candidates that cannot serve are not chosen") {
  Job job;
  job.cost = costs({9'000, 5'000, 3'000, 100'000});
  SECTION("known at once") {
    Run run(job);
    for (Trial& one : run.all()) {
      one.fail(2);
      one.fail(Trial::native);  // MPI always can
    }
    run.make(5'000);
    CHECK(run.first().in_use() == 1);
    CHECK(run.served[2] == 0);
    CHECK(run.first().standing(2).failed);
    CHECK(!run.first().standing(0).failed);
  }
  SECTION("while it is in use") {
    Run run(job);
    run.make(5'000);
    CHECK(run.first().in_use() == 2);
    for (Trial& one : run.all()) one.fail(2);
    CHECK(run.first().candidate() == 0);
    run.make(60'000);
    CHECK(run.first().in_use() == 1);
  }
  SECTION("it never comes to serve: its calls are native") {
    job.serves = [](std::size_t candidate, std::int64_t) { return candidate != 2; };
    SECTION("and it was in use") {
      job.in_use = 2;
    }
    Run run(job);
    run.make(5'000);
    CHECK(run.first().in_use() == 1);
  }
}

TEST_CASE("a trial: whatever is measured, whoever serves and whenever they meet, the ranks stand alike") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    Job job;
    job.ranks = 1 + static_cast<int>(random() % 8);
    job.candidates = 1 + random() % 7;
    job.in_use = random() % job.candidates;
    job.share = 1 + static_cast<std::int64_t>(random() % 1'000'000);
    job.computing_ns = 1 + static_cast<std::int64_t>(random() % 1'000'000);
    job.exchange_ns = 1 + static_cast<std::int64_t>(random() % 1'000'000);
    job.lacks_candidates = random() % 3 == 0;
    job.preparing_ns = static_cast<std::int64_t>(random() % 1'000'000);
    job.begin_ns = static_cast<std::int64_t>(random() % 1'000'000'000);
    job.noise = 0.9;
    const unsigned mixed = random();
    const auto mix = [mixed](std::size_t candidate, std::int64_t call) {
      return static_cast<std::uint32_t>((candidate + 1) * 2654435761u + static_cast<std::uint32_t>(call) * 40503u +
                                        mixed);
    };
    job.cost = [mix](std::size_t candidate, std::int64_t call) {
      return static_cast<std::int64_t>(mix(candidate, call / 1'000) % 1'000'000);
    };
    job.spread = [mix](std::int64_t call) { return static_cast<std::int64_t>(mix(9, call / 700) % 2'000'000); };
    job.meets = [mix](std::int64_t call) { return mix(8, call) % 3 == 0; };
    job.serves = [mix](std::size_t candidate, std::int64_t call) {
      return candidate == 0 || mix(candidate, call) % 5 != 0;
    };
    Run run(job, seed);
    for (int part = 0; part < 10; ++part) {
      run.make(300);
      if (random() % 4 == 0) {
        const std::size_t failing = random() % job.candidates;
        for (Trial& one : run.all())
          if (!one.lacks_candidates()) one.fail(failing);
      }
    }
    CHECK(run.first().calls() == 3'000);
  }
}

}  // namespace papaya::tuning
