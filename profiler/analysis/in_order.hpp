// Pieces of work that threads do beside each other and that are collected in their order.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace papaya::report {

// Memory grows with them, and in MPI_Finalize it is the program's: all in all 64 MiB for 1,000 ranks and 256 MiB for
// 10,000 are to do. So many fit into what is left of that for threads (docs/measurements.md).
inline std::size_t threads_for_reading(std::size_t ranks) {
  constexpr std::size_t bytes_for_threads = 23 << 20;
  constexpr std::size_t bytes_for_threads_of_rank = 16 << 10;
  constexpr std::size_t bytes_of_thread = 2 << 20;
  constexpr std::size_t bytes_of_thread_and_rank = 7 << 10;
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  const std::size_t fit =
      (bytes_for_threads + ranks * bytes_for_threads_of_rank) / (bytes_of_thread + ranks * bytes_of_thread_and_rank);
  return std::clamp(static_cast<std::size_t>(CPU_COUNT(&cores)), std::size_t{1}, fit);
}

// `make(i)` for each i below `count` on one of `threads` threads, the calling one among them, and `take(i, result)` in
// the order of i, one at a time: at most `threads` results are there at once. The first exception of either ends it and
// is thrown on. Where the system has no more threads, fewer do it.
template <class Make, class Take>
void in_order(std::size_t count, std::size_t threads, const Make& make, const Take& take) {
  std::mutex mutex;
  std::condition_variable turn;
  std::size_t next = 0;
  std::size_t taken = 0;
  std::exception_ptr failure;
  const auto work = [&] {
    std::unique_lock lock(mutex);
    while (next < count && !failure) {
      const std::size_t i = next++;
      try {
        lock.unlock();
        auto result = make(i);
        lock.lock();
        turn.wait(lock, [&] { return taken == i || failure; });
        if (failure) break;
        take(i, std::move(result));
        ++taken;
      } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        if (!failure) failure = std::current_exception();
      }
      turn.notify_all();
    }
  };
  std::vector<std::thread> others;
  others.reserve(threads);
  // Signals are for the threads of the program.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    while (others.size() + 1 < std::min(threads, count)) others.emplace_back(work);
  } catch (...) {  // no thread, or no memory for it
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  work();
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace papaya::report
