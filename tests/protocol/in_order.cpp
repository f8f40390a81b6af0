// Pieces of work that threads do beside each other: what is handed on between them is plain memory, which
// ThreadSanitizer watches.
#include "profiler/analysis/in_order.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "tests/catch.hpp"

namespace papaya {
namespace {

bool takes_signals() {
  sigset_t now;
  sigemptyset(&now);
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, SIGUSR1) == 0;
}

// Of different sizes, so that threads come to their turns out of order.
std::vector<std::uint64_t> piece(std::size_t i) {
  std::vector<std::uint64_t> values(1 + (i * 7919) % 5000);
  std::iota(values.begin(), values.end(), i);
  return values;
}

}  // namespace

TEST_CASE("pieces of work are collected one at a time in their order", "[protocol]") {
  for (const std::size_t threads : {1, 2, 7}) {
    constexpr std::size_t count = 300;
    std::vector<std::size_t> taken;
    std::uint64_t sum = 0;
    std::set<std::thread::id> makers;
    bool is_undisturbed = true;
    const std::thread::id caller = std::this_thread::get_id();
    struct Made {
      std::vector<std::uint64_t> values;
      std::thread::id by;
      bool takes_signals;
    };
    report::in_order(
        count, threads,
        [](std::size_t i) {
          return Made{piece(i), std::this_thread::get_id(), takes_signals()};
        },
        [&](std::size_t i, Made made) {
          taken.push_back(i);
          sum = std::accumulate(made.values.begin(), made.values.end(), 31 * sum);
          makers.insert(made.by);
          is_undisturbed = is_undisturbed && made.takes_signals == (made.by == caller);
        });
    REQUIRE(taken.size() == count);
    CHECK(std::is_sorted(taken.begin(), taken.end()));
    std::uint64_t expected = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<std::uint64_t> values = piece(i);
      expected = std::accumulate(values.begin(), values.end(), 31 * expected);
    }
    CHECK(sum == expected);
    CHECK(makers.size() <= threads);
    CHECK(is_undisturbed);  // signals are for the program's threads
    CHECK(takes_signals());
  }
}

TEST_CASE("the first exception of making or collecting ends all threads and is thrown on", "[protocol]") {
  for (const std::size_t threads : {1, 2, 7})
    for (const bool in_make : {true, false}) {
      std::vector<std::size_t> taken;
      CHECK_THROWS_AS(report::in_order(
                          300, threads,
                          [&](std::size_t i) {
                            if (in_make && i == 50) throw std::runtime_error("piece 50");
                            return piece(i);
                          },
                          [&](std::size_t i, std::vector<std::uint64_t>) {
                            if (i == 50) throw std::runtime_error("collecting 50");
                            taken.push_back(i);
                          }),
                      std::runtime_error);
      CHECK(taken.size() <= 50);
      CHECK(std::is_sorted(taken.begin(), taken.end()));
      CHECK(takes_signals());
    }
}

}  // namespace papaya
