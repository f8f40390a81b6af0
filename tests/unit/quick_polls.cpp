// Polls in quick succession, by a made-up clock: what is not timed is counted and estimated.
#include "profiler/record/quick_polls.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "tests/catch.hpp"

using papaya::QuickPolls;

namespace {

constexpr std::uint64_t quick = 1000;

// A thread that computes, polls, and notes what a poll would take by QuickPolls.
struct Thread {
  void compute(std::uint64_t ticks) { now += ticks; }
  // Returns whether the poll was timed.
  bool call(std::size_t poll, std::uint64_t inside, bool finds = false) {
    if (!polls.may_skip(poll)) {
      read(now);
      now += inside;
      polls.timed(poll, functions[poll], inside, quick);
      take();
      left = now;
      return true;
    }
    polls.skip(poll, functions[poll]);
    now += inside;
    if (finds) {
      const std::uint64_t own = polls.found(poll, now - left, quick);
      read(now - own);
      left = now;
    }
    return false;
  }
  // Any other call of MPI's begins.
  void read(std::uint64_t at) {
    outside += at - left;
    outside -= polls.settle(at - left, quick).inside;
    left = at;
    take();
  }
  void take() {
    polls.take([&](std::size_t function, std::uint64_t ticks, std::uint64_t calls) {
      const auto at = std::find(functions.begin(), functions.end(), function);
      REQUIRE(at != functions.end());
      counted[static_cast<std::size_t>(at - functions.begin())] += ticks;
      taken += calls;
    });
  }

  static constexpr std::array<std::size_t, 2> functions{30, 70};
  QuickPolls polls;
  std::uint64_t now = 1'000'000;
  std::uint64_t left = now;
  std::uint64_t outside = 0;
  std::array<std::uint64_t, 2> counted{};
  std::uint64_t taken = 0;
};

}  // namespace

TEST_CASE("of polls in quick succession one in seven is timed, and the sums are right", "[quick_polls]") {
  Thread thread;
  int timed = 0;
  for (int i = 0; i < 7000; ++i) {
    thread.compute(50);
    timed += thread.call(0, 30) ? 1 : 0;
  }
  thread.compute(50);
  thread.read(thread.now);
  CHECK(timed >= 1000);
  CHECK(timed <= 1020);
  CHECK(thread.counted[0] == 7000 * 30);
  CHECK(thread.outside == 7001 * 50);
  CHECK(thread.taken == 7000);
}

TEST_CASE("two functions in turn are each timed", "[quick_polls]") {
  Thread thread;
  std::array<int, 2> timed{};
  for (int i = 0; i < 1400; ++i) {
    timed[0] += thread.call(0, 10) ? 1 : 0;
    thread.compute(20);
    timed[1] += thread.call(1, 40) ? 1 : 0;
  }
  thread.read(thread.now);
  CHECK(timed[0] >= 200);
  CHECK(timed[1] >= 200);
  CHECK(thread.counted[0] == 1400 * 10);
  CHECK(thread.counted[1] == 1400 * 40);
  CHECK(thread.outside == 1400 * 20);
}

TEST_CASE("polls with time in between are all timed", "[quick_polls]") {
  Thread thread;
  for (int i = 0; i < 500; ++i) {
    thread.compute(quick);
    REQUIRE(thread.call(0, 30));
  }
}

TEST_CASE("polls that take long are all timed", "[quick_polls]") {
  Thread thread;
  for (int i = 0; i < 500; ++i) REQUIRE(thread.call(0, quick));
}

TEST_CASE("a function is timed once before any call of it is not", "[quick_polls]") {
  Thread thread;
  for (int i = 0; i < 100; ++i) thread.call(0, 10);
  CHECK(thread.call(1, 10));
}

TEST_CASE("a long time between polls is computing, and they are all timed again", "[quick_polls]") {
  Thread thread;
  while (thread.call(0, 10)) {
  }
  thread.compute(50'000);
  thread.read(thread.now);
  CHECK(thread.counted[0] == 10 * (QuickPolls::sure_from / 2 + 1));  // two readings a poll
  CHECK(thread.outside == 50'000);
  for (std::uint32_t i = 0; i < QuickPolls::sure_from / 2; ++i) CHECK(thread.call(0, 10));
}

TEST_CASE("polls are never estimated to take more than what went by", "[quick_polls]") {
  Thread thread;
  for (int i = 0; i < 100; ++i) thread.call(0, 900);
  thread.read(thread.now);
  const std::uint64_t begin = thread.now;
  const std::uint64_t before = thread.counted[0];
  while (thread.call(0, 5)) {
  }
  while (!thread.call(0, 5)) {
  }
  CHECK(thread.counted[0] - before <= thread.now - begin);
  CHECK(thread.counted[0] + thread.outside == thread.now - 1'000'000);
}

TEST_CASE("what a poll finds quickly takes as long as a poll does", "[quick_polls]") {
  Thread thread;
  while (thread.call(0, 10)) thread.compute(20);
  thread.compute(20);
  thread.call(0, 10, true);
  CHECK(thread.counted[0] == 10 * (QuickPolls::sure_from / 2 + 2));
}

TEST_CASE("a poll that finds something after a long time has brought it", "[quick_polls]") {
  Thread thread;
  while (thread.call(0, 10)) {
  }
  const std::uint64_t before = thread.counted[0];
  const std::uint64_t outside = thread.outside;
  thread.call(0, 100'000, true);
  CHECK(thread.counted[0] - before == 100'010);
  CHECK(thread.outside == outside);
  CHECK(thread.call(0, 10));
}

TEST_CASE("a timed poll that took long says nothing of those that are not timed", "[quick_polls]") {
  Thread thread;
  thread.call(0, 10);
  thread.call(0, 100'000, true);
  for (int i = 0; i < 700; ++i) {
    thread.compute(50);
    thread.call(0, 10);
  }
  thread.compute(50);
  thread.read(thread.now);
  CHECK(thread.counted[0] == 10 + 100'000 + 700 * 10);
  CHECK(thread.outside == 701 * 50);
}
