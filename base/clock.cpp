#include "base/clock.hpp"

#include <cstddef>
#include <cstdio>
#include <cstring>

namespace papaya::clock {

namespace detail {
bool use_counter = false;
std::uint64_t namespace_ns = 0;
}  // namespace detail

namespace {

// The first bytes of a file of the kernel; empty if there is none.
template <std::size_t size>
const char* beginning_of(const char* name, char (&text)[size]) noexcept {
  text[0] = '\0';
  if (std::FILE* file = std::fopen(name, "re")) {
    text[std::fread(text, 1, size - 1, file)] = '\0';
    std::fclose(file);
  }
  return text;
}

}  // namespace

bool counter_is_trusted() noexcept {
#if defined(__aarch64__)
  return true;  // the architecture defines CNTVCT as system-wide and constant
#else
  char source[32];
  return std::strncmp(beginning_of("/sys/devices/system/clocksource/clocksource0/current_clocksource", source), "tsc",
                      3) == 0;
#endif
}

std::int64_t namespace_offset_ns(const char* text) noexcept {
  long long seconds = 0;
  long long nanoseconds = 0;
  const char* const line = std::strstr(text, "monotonic");
  if (line == nullptr || std::sscanf(line, "monotonic %lld %lld", &seconds, &nanoseconds) != 2) return 0;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(seconds) * 1'000'000'000 +
                                   static_cast<std::uint64_t>(nanoseconds));
}

void choose(bool trusted) noexcept {
  char offsets[128];
  if (!trusted)
    detail::namespace_ns =
        static_cast<std::uint64_t>(namespace_offset_ns(beginning_of("/proc/self/timens_offsets", offsets)));
  detail::use_counter = trusted;
}

Pair read_pair() noexcept {
  Pair best{};
  std::uint64_t shortest = ~std::uint64_t{0};
  for (int attempt = 0; attempt < 8; ++attempt) {
    const std::uint64_t before = monotonic_ns();
    const std::uint64_t now = ticks();
    const std::uint64_t after = monotonic_ns();
    if (after - before < shortest) {
      shortest = after - before;
      best = {now, before + (after - before) / 2};
    }
  }
  return best;
}

double ns_per_tick(const Pair& earlier, const Pair& later) noexcept {
  if (!detail::use_counter || later.ticks <= earlier.ticks) return 1.0;
  return static_cast<double>(later.monotonic_ns - earlier.monotonic_ns) /
         static_cast<double>(later.ticks - earlier.ticks);
}

std::int64_t unix_ns() noexcept {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1000000000 + t.tv_nsec;
}

}  // namespace papaya::clock
