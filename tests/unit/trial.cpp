// Online selection: every rank has a Trial of its own, and here they share nothing but what is exchanged. After each
// call all must stand alike. Costs come from a model, whose truth the choice is compared with.
#include "tuning/trial.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "tests/catch.hpp"

namespace papaya::tuning {

namespace {

constexpr std::int64_t one_percent = 10'000;

// Ranks that compute for `computing_ns` between calls, arrive over `spread_ns`, and leave `cost` after the last one.
struct Job {
  int ranks = 3;
  std::size_t candidates = 4;
  std::size_t in_use = 0;
  std::int64_t share = one_percent;
  std::int64_t computing_ns = 20'000;
  std::int64_t exchange_ns = 10'000;
  std::int64_t begin_ns = 300'000'000;  // MPI_Init took that
  std::int64_t elsewhere_ns = 0;
  std::int64_t trials = 1;
  bool has_one_clock = true;  // else each rank's is off by seconds
  std::function<std::int64_t(std::size_t candidate, std::int64_t call)> cost;
  std::function<std::int64_t(std::int64_t call)> spread = [](std::int64_t) { return 500; };
  double noise = 0.05;
  // May the ranks exchange in this call?
  std::function<bool(std::int64_t call)> meets = [](std::int64_t) { return true; };
  // Does the candidate serve it?
  std::function<bool(std::size_t candidate, std::int64_t call)> serves = [](std::size_t, std::int64_t) { return true; };
};

class Run {
 public:
  explicit Run(Job job, unsigned seed = 1) : job_(std::move(job)), random_(seed), now_(job_.begin_ns) {
    served.assign(job_.candidates, 0);
    for (int rank = 0; rank < job_.ranks; ++rank)
      ranks_.emplace_back(Trial::Terms{.candidates = job_.candidates,
                                       .in_use = job_.in_use,
                                       .share = job_.share,
                                       .has_one_clock = job_.has_one_clock});
  }

  void make(std::int64_t calls) {
    for (std::int64_t i = 0; i < calls; ++i) make_one();
  }

  Trial& first() { return ranks_.front(); }
  std::vector<Trial>& all() { return ranks_; }
  std::int64_t now() const { return now_; }
  std::int64_t lost_ns = 0;  // beside the candidate that is the quickest at that time
  std::int64_t exchanged_ns = 0;
  std::int64_t exchanges = 0;
  std::vector<std::int64_t> served;

 private:
  void exchange() {
    std::vector<std::int64_t> largest;
    for (Trial& one : ranks_) {
      // Ranks do not agree on how long the run has lasted.
      const std::vector<std::int64_t> mine =
          one.largest(now_ - static_cast<std::int64_t>(random_() % 1000), job_.elsewhere_ns, job_.trials);
      if (largest.empty()) largest = mine;
      REQUIRE(largest.size() == mine.size());
      for (std::size_t i = 0; i < mine.size(); ++i) largest[i] = std::max(largest[i], mine[i]);
    }
    std::vector<std::int64_t> sums;
    for (Trial& one : ranks_) {
      const std::vector<std::int64_t> mine = one.sums(largest);
      if (sums.empty()) sums.assign(mine.size(), 0);
      REQUIRE(sums.size() == mine.size());
      for (std::size_t i = 0; i < mine.size(); ++i) sums[i] += mine[i];
    }
    for (Trial& one : ranks_) {
      one.take(largest, sums, job_.ranks);
      one.note_exchange(job_.exchange_ns + static_cast<std::int64_t>(random_() % 1000));
    }
    now_ += job_.exchange_ns;
    exchanged_ns += job_.exchange_ns;
    ++exchanges;
  }

  void make_one() {
    if (first().wants_exchange() && job_.meets(call_)) exchange();
    const std::size_t candidate = first().candidate();
    for (Trial& one : ranks_) {
      REQUIRE(one.candidate() == candidate);
      REQUIRE(one.slot() == first().slot());
      REQUIRE(one.wants_exchange() == first().wants_exchange());
    }
    ++served[candidate];
    const bool serves = job_.serves(candidate, call_);
    std::uniform_real_distribution<double> noise(1 - job_.noise, 1 + job_.noise);
    const std::int64_t usual = job_.cost(serves ? candidate : 0, call_);
    std::vector<std::int64_t> arrivals;
    for (int rank = 0; rank < job_.ranks; ++rank)
      arrivals.push_back(now_ + job_.computing_ns + static_cast<std::int64_t>(random_() % 200) +
                         (rank == 0 ? job_.spread(call_) : 0));
    const std::int64_t last = *std::max_element(arrivals.begin(), arrivals.end());
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto cost = static_cast<std::int64_t>(static_cast<double>(usual) * noise(random_));
      const std::int64_t off_ns = job_.has_one_clock ? 0 : static_cast<std::int64_t>(rank) * -3'000'000'000;
      if (serves)
        ranks_[rank].keep(ranks_[rank].slot(), candidate, {arrivals[rank] + off_ns, last + cost + off_ns, true, true});
      ranks_[rank].count_call();
    }
    std::int64_t least = usual;
    for (std::size_t i = 0; i < job_.candidates; ++i) least = std::min(least, job_.cost(i, call_));
    lost_ns += usual - least;
    now_ = last + usual;
    ++call_;
  }

  Job job_;
  std::mt19937 random_;
  std::int64_t now_;
  std::int64_t call_ = 0;
  std::vector<Trial> ranks_;
};

std::function<std::int64_t(std::size_t, std::int64_t)> costs(std::vector<std::int64_t> of) {
  return [of = std::move(of)](std::size_t candidate, std::int64_t) { return of[candidate]; };
}

}  // namespace

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

TEST_CASE("a trial: what other trials have lost counts") {
  Job job;
  job.cost = costs({9'000, 5'000, 3'000, 100'000});
  job.elsewhere_ns = 1'000'000'000;
  Run run(job);
  run.make(5'000);
  CHECK(run.first().trials() == 0);
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
        for (Trial& one : run.all()) one.fail(failing);
      }
    }
    CHECK(run.first().calls() == 3'000);
  }
}

}  // namespace papaya::tuning
