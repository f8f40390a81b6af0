#include "algorithms/transport/wait.hpp"

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

}  // namespace

// The C library's, for this program.
extern "C" int clock_gettime(clockid_t which, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, which, time));
  if (which == CLOCK_MONOTONIC) time->tv_sec -= set_back_s.load(std::memory_order_relaxed);
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

// Other jobs, containers, the nodes of the box: by its own count the rank has a core to itself, and would spin for 20 us before it
// let go of what the awaited one needs.
TEST_CASE("a rank that shares its core unawares finds out and does not spin") {
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
  // Again where the machine's other work took the core meanwhile: then the rank sleeps, and learns nothing about yields.
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
