// The clock every stamp is taken from: the time-stamp counter where the kernel itself keeps time by it (9 ns a read
// instead of 21 ns for clock_gettime), else CLOCK_MONOTONIC as it is outside time namespaces. Ticks of all processes of
// a node are comparable; the factor to nanoseconds is agreed on per node so that conversions are comparable as well.
#pragma once

#include <cstdint>
#include <ctime>

namespace papaya::clock {

// True if the kernel's clock source is the processor's counter, which then is synchronous on all cores.
bool counter_is_trusted() noexcept;

namespace detail {
extern bool use_counter;
extern std::uint64_t namespace_ns;  // how far CLOCK_MONOTONIC is ahead here, modulo 2^64
}  // namespace detail

inline std::uint64_t monotonic_ns() noexcept {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

inline std::uint64_t counter() noexcept {
#if defined(__x86_64__)
  std::uint32_t low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (static_cast<std::uint64_t>(high) << 32) | low;
#elif defined(__aarch64__)
  std::uint64_t value;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return monotonic_ns();
#endif
}

inline std::uint64_t ticks() noexcept {
  if (__builtin_expect(detail::use_counter, true)) return counter();
  return monotonic_ns() - detail::namespace_ns;
}

// Whether ticks() is counter().
inline bool is_counter() noexcept {
  return detail::use_counter;
}

// What this process's time namespace adds to CLOCK_MONOTONIC, by the text of /proc/self/timens_offsets; 0 if it does
// not say.
std::int64_t namespace_offset_ns(const char* text) noexcept;

// Chooses the source. Every rank of a node must choose alike: `trusted` is agreed on by them.
void choose(bool trusted) noexcept;

// A reading of both clocks, taken as close together as the machine allows.
struct Pair {
  std::uint64_t ticks;
  std::uint64_t monotonic_ns;
};
Pair read_pair() noexcept;

// Nanoseconds per tick between two readings; 1 where ticks are nanoseconds already.
double ns_per_tick(const Pair& earlier, const Pair& later) noexcept;

std::int64_t unix_ns() noexcept;

}  // namespace papaya::clock
