#include "algorithms/waiting/wait.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

#include "tests/catch.hpp"

using namespace papaya;

namespace {

std::chrono::nanoseconds process_cpu_time() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// The affinity of this thread, and of those it starts, to the first core that it may use.
class OnOneCore {
 public:
  OnOneCore() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &before_)) {
        CPU_SET(core, &one);
        break;
      }
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OnOneCore() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_{};
};

// By how much the clock below is set back.
std::atomic<std::int64_t> set_back_s{0};
// If it is not 0, what the clock below shows; it goes on by a step at each look.
std::atomic<std::int64_t> made_up_ns{0};
constexpr std::int64_t made_up_step_ns = 4'000;

}  // namespace

// The C library's, for this program.
extern "C" int clock_gettime(clockid_t which, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, which, time));
  if (which == CLOCK_MONOTONIC) time->tv_sec -= set_back_s.load(std::memory_order_relaxed);
  if (which == CLOCK_MONOTONIC && made_up_ns.load(std::memory_order_relaxed) != 0) {
    const std::int64_t now = made_up_ns.fetch_add(made_up_step_ns, std::memory_order_relaxed);
    *time = {now / 1'000'000'000, now % 1'000'000'000};
  }
  return result;
}

TEST_CASE("a clock that jumps back neither stops the pokes nor makes a stall") {
  clock::choose(false);
  static std::atomic<int> pokes;
  pokes = 0;
  for (const auto mode : {wait::Mode::spin, wait::Mode::yield, wait::Mode::block, wait::Mode::automatic}) {
    wait::Policy policy;
    policy.configure(mode, {.cores = 2, .ranks = 2}, [] { pokes.fetch_add(1); });
    static std::atomic<int> stalls;
    stalls = 0;
    policy.set_stall(1000, [](void*, double) { return stalls.fetch_add(1) >= 0; });
    wait::Doorbell bell{};
    wait::Site site;
    int looks = 0;
    int before = 0;
    policy.until(
        site, bell, 1,
        [&] {
          if (++looks == 100) {
            set_back_s = 10;
            before = pokes.load();
          }
          // Twenty pokes after the jump, or never.
          return looks > 100 && (pokes.load() >= before + 20 || looks > 20'000'000);
        },
        [] { return false; }, nullptr);
    set_back_s = 0;
    CHECK(pokes.load() >= before + 20);
    CHECK(stalls == 0);
  }
  clock::choose(clock::counter_is_trusted());
}

namespace {

void spin_for(std::chrono::microseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < until) {
  }
}

std::atomic<int> pokes{0};
std::atomic<int> work_left{0};

// MPI's progress: finds work in so many pokes.
void poke() {
  pokes.fetch_add(1, std::memory_order_relaxed);
  if (work_left.load(std::memory_order_relaxed) <= 0) return;
  work_left.fetch_sub(1, std::memory_order_relaxed);
  spin_for(std::chrono::microseconds(2));
}

}  // namespace

TEST_CASE("pokes that found work are told from others by how long they take") {
  wait::PokeCost cost;
  CHECK(cost.pokes_to_follow(1e3) == 0);  // nothing is known yet
  const auto learn_idle = [&](double usual, double every_eighth, int groups) {
    int said = 0;
    for (int i = 0; i < 8 * groups; ++i) {
      const double ns = i % 8 == 7 ? every_eighth : usual;
      cost.learn(ns);
      said += cost.pokes_to_follow(ns);
    }
    return said;
  };
  learn_idle(60, 100, 1);
  CHECK(learn_idle(60, 100, 1000) == 0);
  CHECK(cost.pokes_to_follow(180) == wait::PokeCost::some_work);
  CHECK(cost.pokes_to_follow(600) == wait::PokeCost::much_work);
  CHECK(cost.pokes_to_follow(3e6) == 0);  // another had the core
  // Moving large data, each poke works.
  CHECK(learn_idle(3000, 3000, 5000) == 8 * 5000 * wait::PokeCost::much_work);
  learn_idle(60, 100, 1);
  CHECK(cost.pokes_to_follow(180) == wait::PokeCost::some_work);
  // MPI has more to look at from now on.
  learn_idle(200, 300, 200);
  CHECK(learn_idle(200, 300, 100) == 0);
}

TEST_CASE("a waiting rank stays awake while pokes find work, and then sleeps", "[kernel]") {
  wait::Policy policy;
  policy.configure(wait::Mode::block, {.cores = 2, .ranks = 2}, poke);
  wait::Doorbell bell{};
  wait::Site site;
  pokes = 0;
  work_left = 3000;
  policy.until(
      site, bell, 1, [] { return work_left.load(std::memory_order_relaxed) <= 0; }, [] { return false; }, nullptr);
  // Nearly all in a row: it used to sleep after each.
  CHECK(pokes >= 3000);
  CHECK(policy.sleeps() < 300);
  // Awake it would be a million. On a busy machine a poke that was interrupted counts as work, but hardly three times.
  bool sleeps_mostly = false;
  for (std::uint32_t round = 2; round < 5 && !sleeps_mostly; ++round) {
    const std::uint64_t sleeps = policy.sleeps();
    pokes = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    policy.until(
        site, bell, round, [&] { return std::chrono::steady_clock::now() > end; }, [] { return false; }, nullptr);
    CHECK(policy.sleeps() - sleeps >= 10);
    sleeps_mostly = pokes < 100000;
  }
  CHECK(sleeps_mostly);
}

TEST_CASE("a rank that waits as long as ever is awake when the wait ends") {
  clock::choose(false);
  made_up_ns = 1'000'000'000;
  wait::Policy policy;
  policy.configure(wait::Mode::automatic, {.cores = 1, .ranks = 2}, nullptr);
  // How often a rank sleeps in the last 5 ms of a wait of 60 ms.
  const auto sleeps_at_the_end = [&](wait::Site site) {
    wait::Doorbell bell{};
    const std::int64_t begin = made_up_ns;
    std::uint64_t before = 0, slept = policy.sleeps();
    policy.until(
        site, bell, 1,
        [&] {
          for (; slept < policy.sleeps(); ++slept) made_up_ns += 1'000'000;  // what a sleep takes
          if (made_up_ns - begin < 55'000'000) before = policy.sleeps();
          return made_up_ns - begin >= 60'000'000;
        },
        [] { return false; }, nullptr);
    return policy.sleeps() - before;
  };
  const auto site_of = [&](double ms) {
    wait::Site site;
    for (int i = 0; i < 8; ++i) site.learn(policy.to_ticks(ms * 1e6));
    return site;
  };
  CHECK(sleeps_at_the_end({}) > 0);
  CHECK(sleeps_at_the_end(site_of(30)) > 0);
  CHECK(sleeps_at_the_end(site_of(60)) == 0);
  CHECK(sleeps_at_the_end(site_of(1000)) > 0);
  made_up_ns = 0;
  clock::choose(clock::counter_is_trusted());
}

TEST_CASE("a rank that is about to sleep looks once more") {
  wait::Policy policy;
  policy.configure(wait::Mode::block, {.cores = 1, .ranks = 2}, nullptr);
  wait::Doorbell bell{};
  wait::Site site;
  bool happened = false;
  // Nobody rings: whoever made it happen saw no sleeper.
  policy.until(
      site, bell, 1, [&] { return happened; },
      [&] {
        happened = true;
        return false;
      },
      nullptr);
  CHECK(policy.sleeps() == 0);
  CHECK(bell.sleepers.load() == 0);
}

// Horovod's shape: one thread computes, another one that was made for MPI waits.
TEST_CASE("a thread that collects work of one that computes gives it its whole slices", "[kernel]") {
  const OnOneCore core;
  std::atomic<int> events{0};
  std::atomic<bool> done{false};
  std::thread computing([&] {
    while (!done.load(std::memory_order_relaxed)) {
      spin_for(std::chrono::milliseconds(6));
      events.fetch_add(1, std::memory_order_release);
    }
  });
  constexpr int waits = 20;
  const auto sleeps_of_waits = [&](bool is_paced) {
    wait::Policy policy;
    policy.configure(wait::Mode::automatic, {.cores = 2, .ranks = 2}, nullptr);
    wait::Doorbell bell{};
    wait::Site site;
    std::uint64_t sleeps = 0;
    for (std::uint32_t i = 1; i <= 10 + waits; ++i) {
      if (i == 11) sleeps = policy.sleeps();
      if (is_paced) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const int before = events.load(std::memory_order_acquire);
      policy.until(
          site, bell, i, [&] { return events.load(std::memory_order_acquire) > before; }, [] { return false; },
          nullptr);
    }
    return policy.sleeps() - sleeps;
  };
  // Only where the two have the core to themselves: beside a third the waiting thread has to sleep.
  std::uint64_t beside = waits;
  int undisturbed = 0;
  for (int attempt = 0; attempt < 20 && undisturbed < 5 && beside >= waits / 2; ++attempt) {
    const auto begin = std::chrono::steady_clock::now();
    const std::chrono::nanoseconds begin_cpu = process_cpu_time();
    std::uint64_t sleeps = 0;
    std::thread waiting([&] { sleeps = sleeps_of_waits(true); });
    waiting.join();
    if (process_cpu_time() - begin_cpu < 0.95 * (std::chrono::steady_clock::now() - begin)) continue;
    ++undisturbed;
    beside = sleeps;
  }
  // A thread that makes call after call waits for each, and is woken at once.
  std::uint64_t in_a_hurry = 0;
  for (int attempt = 0; attempt < 10 && in_a_hurry < waits / 2; ++attempt) {
    std::thread waiting([&] { in_a_hurry = sleeps_of_waits(false); });
    waiting.join();
  }
  // Who waits in the first thread may be waited for by those that compute, and is woken at once.
  const std::uint64_t first = sleeps_of_waits(true);
  done = true;
  computing.join();
  if (wait::does_yield_give_a_slice() && undisturbed > 0) CHECK(beside < waits / 2);
  CHECK(in_a_hurry >= waits / 2);
  CHECK(first >= waits / 2);
}

// A rank that is ahead looks for a moment before it falls back; where another program computes on the core, each
// look may take a slice of that.
TEST_CASE("a rank that must not wait does not give away a slice at each look") {
  const OnOneCore core;
  const pid_t other = fork();
  if (other == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) spin_for(std::chrono::milliseconds(1));
  }
  wait::Policy policy;
  policy.configure(wait::Mode::automatic, {.cores = 1, .ranks = 2}, nullptr);
  REQUIRE(policy.oversubscribed());
  int looks = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    looks = 0;
    CHECK_FALSE(policy.is_soon([&] { return ++looks < 0; }, std::size_t{1} << 20));
    if (looks < 100) break;
  }
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  CHECK(looks >= 4);
  if (wait::does_yield_give_a_slice()) CHECK(looks < 100);
}

// Other jobs, containers, the nodes of the box: by its own count the rank has a core to itself, and would spin for 20
// us before it let go of what the awaited one needs.
TEST_CASE("a rank that shares its core unawares finds out and does not spin", "[kernel]") {
  const OnOneCore core;
  auto& turns = *static_cast<std::atomic<std::uint64_t>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t other = fork();  // threads of its own process the rank would count
  if (other == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) {
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(10);
      while (std::chrono::steady_clock::now() < until) {
      }
      turns.fetch_add(1, std::memory_order_release);
      sched_yield();
    }
  }
  bool finds_out = false;
  int usual_looks = 0;
  // Again where the machine's other work took the core meanwhile: then the rank sleeps, and learns nothing about
  // yields.
  for (int attempt = 0; attempt < 100 && !(finds_out && usual_looks < 100); ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    wait::Policy policy;
    policy.configure(wait::Mode::automatic, {.cores = 2, .ranks = 2}, nullptr);
    REQUIRE_FALSE(policy.shares_core());
    wait::Doorbell bell{};
    wait::Site site;
    std::vector<int> looks;
    for (std::uint32_t i = 1; i <= 300; ++i) {
      int count = 0;
      const std::uint64_t before = turns.load(std::memory_order_acquire);
      policy.until(
          site, bell, i,
          [&] {
            ++count;
            return turns.load(std::memory_order_acquire) > before;
          },
          [] { return false; }, nullptr);
      if (i > 100) looks.push_back(count);
    }
    std::nth_element(looks.begin(), looks.begin() + 100, looks.end());
    finds_out = policy.shares_core();
    usual_looks = looks[100];
  }
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  munmap(&turns, 4096);
  CHECK(finds_out);
  CHECK(usual_looks < 100);  // spinning: some hundreds
}
