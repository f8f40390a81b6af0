#include "base/clock.hpp"

#include <cstdio>
#include <cstring>

namespace papaya::clock {

namespace detail {
bool use_counter = false;
}

bool counter_is_trusted() noexcept {
#if defined(__aarch64__)
  return true;  // the architecture defines CNTVCT as system-wide and constant
#else
  char source[32] = "";
  if (std::FILE* file = std::fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re")) {
    if (std::fgets(source, sizeof source, file) == nullptr) source[0] = '\0';
    std::fclose(file);
  }
  return std::strncmp(source, "tsc", 3) == 0;
#endif
}

void choose(bool trusted) noexcept {
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
