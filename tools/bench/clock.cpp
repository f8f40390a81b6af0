#include "tools/bench/clock.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <cmath>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "base/settings.hpp"
#include "interpose/measure.hpp"
#include "tools/bench/quiet.hpp"

namespace papaya::bench {

namespace {
constexpr double rate_us = 20000;  // the counter's rate is measured over so long
constexpr double spin_us = 100;    // a sleeper wakes up to so late on an idle machine

// PAPAYA_NODE_SIZE: the library sees several nodes in one.
int node_size() {
  std::vector<std::string> warnings;
  return static_cast<int>(Settings::from_environment(environ, warnings).number(Variable::node_size));
}
}  // namespace

CommonClock::CommonClock(MPI_Comm world) : world_(world) {
  int rank = 0, node_rank = 0;
  PMPI_Comm_rank(world, &rank);
  PMPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node_);
  PMPI_Comm_rank(node_, &node_rank);
  if (const int size = node_size(); size > 0) {
    MPI_Comm whole = std::exchange(node_, MPI_COMM_NULL);
    PMPI_Comm_split(whole, node_rank / size, rank, &node_);
    PMPI_Comm_free(&whole);
    PMPI_Comm_rank(node_, &node_rank);
  }
  PMPI_Comm_split(world, node_rank == 0 ? 0 : MPI_UNDEFINED, rank, &leaders_);
  nodes_ = static_cast<int>(quiet::sum(node_rank == 0 ? 1 : 0, world));

  clock::choose(quiet::maximum(clock::counter_is_trusted() ? 0 : 1, node_) == 0);
  const clock::Pair begin = clock::read_pair();
  struct {
    std::uint64_t origin_ticks;
    double us_per_tick;
  } agreed{begin.ticks, 0};
  if (node_rank == 0) {
    const timespec pause{0, static_cast<long>(rate_us * 1e3)};
    nanosleep(&pause, nullptr);
    agreed.us_per_tick = clock::ns_per_tick(begin, clock::read_pair()) * 1e-3;
  }
  quiet::share(&agreed, sizeof agreed, node_);
  origin_ticks_ = agreed.origin_ticks;
  us_per_tick_ = agreed.us_per_tick;
  synchronise();
}

void CommonClock::sleep_exactly() noexcept {
  prctl(PR_SET_TIMERSLACK, 1UL);
}

CommonClock::~CommonClock() {
  if (leaders_ != MPI_COMM_NULL) PMPI_Comm_free(&leaders_);
  PMPI_Comm_free(&node_);
}

void CommonClock::synchronise() {
  if (nodes_ > 1) {
    double found[2] = {0, 0};
    if (leaders_ != MPI_COMM_NULL) {
      const trace::ClockOffset offset = measure::clock_offset(leaders_, us_per_tick_ * 1e3, origin_ticks_);
      found[0] = static_cast<double>(offset.offset_ns) * 1e-3;
      found[1] = static_cast<double>(offset.error_ns) * 1e-3;
    }
    quiet::share(found, sizeof found, node_);
    offset_us_ = found[0];
    error_us_ = 2 * quiet::maximum(found[1], world_);
  }
  anchor_ = clock::read_pair();
}

void CommonClock::wait_until(double us, bool spin) const noexcept {
  const double anchor_us =
      static_cast<double>(static_cast<std::int64_t>(anchor_.ticks - origin_ticks_)) * us_per_tick_ + offset_us_;
  const double sleep_ns = (us - anchor_us - (spin ? spin_us : 0)) * 1e3;
  if (sleep_ns > 0) {
    const std::uint64_t wake_ns = anchor_.monotonic_ns + static_cast<std::uint64_t>(sleep_ns);
    timespec wake;
    wake.tv_sec = static_cast<time_t>(wake_ns / 1000000000u);
    wake.tv_nsec = static_cast<long>(wake_ns % 1000000000u);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, nullptr) != 0) {
    }
  }
  if (spin)
    while (now_us() < us) {
    }
}

}  // namespace papaya::bench
