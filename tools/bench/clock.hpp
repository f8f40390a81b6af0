// One clock for all ranks of the job, in microseconds, and arrivals by deadlines on it.
#pragma once

#include <mpi.h>

#include "base/clock.hpp"

namespace papaya::bench {

// On a node the ranks share a counter and its rate; nodes know their offset to the first one's clock by the
// shortest of several round trips. All but now_us and wait_until are collective.
class CommonClock {
 public:
  explicit CommonClock(MPI_Comm world);
  ~CommonClock();
  CommonClock(const CommonClock&) = delete;
  CommonClock& operator=(const CommonClock&) = delete;

  void synchronise();  // the clocks of nodes drift: before each round

  // The work before is done when the clock is read, the work after begins afterwards.
  double now_us() const noexcept {
    fence();
    const std::uint64_t ticks = clock::ticks();
    fence();
    return static_cast<double>(static_cast<std::int64_t>(ticks - origin_ticks_)) * us_per_tick_ + offset_us_;
  }

  // From now on sleeps do not end up to 50 us late. Each costs its core an interrupt of its own then.
  static void sleep_exactly() noexcept;
  // Sleeps until then; with `spin` the last bit is spun, since a sleeper wakes late.
  void wait_until(double us, bool spin) const noexcept;

  double error_us() const noexcept { return error_us_; }  // between any two ranks, at most
  MPI_Comm node() const noexcept { return node_; }
  int nodes() const noexcept { return nodes_; }

 private:
  static void fence() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_lfence();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
  }

  MPI_Comm world_;
  MPI_Comm node_ = MPI_COMM_NULL;
  MPI_Comm leaders_ = MPI_COMM_NULL;  // the first rank of each node, on those ranks
  int nodes_ = 1;
  std::uint64_t origin_ticks_ = 0;
  double us_per_tick_ = 1e-3;
  double offset_us_ = 0;
  double error_us_ = 0;
  clock::Pair anchor_{};
};

}  // namespace papaya::bench
