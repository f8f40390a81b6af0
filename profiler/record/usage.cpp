#include "profiler/record/usage.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <iterator>

#include "base/clock.hpp"

namespace papaya {

namespace {

constexpr std::uint64_t not_told = ~std::uint64_t{0};

std::uint64_t ns_of(const timeval& time) noexcept {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_usec) * 1000;
}

// The second number is for how long the first thread was ready and did not run. Without CONFIG_SCHED_INFO there is no
// such file, and a kernel that does not count has zeros.
std::uint64_t core_wait_ns() noexcept {
  std::FILE* const file = std::fopen("/proc/self/schedstat", "re");
  if (file == nullptr) return not_told;
  std::uint64_t ran = 0;
  std::uint64_t waited = 0;
  const bool is_told = std::fscanf(file, "%" SCNu64 "%" SCNu64, &ran, &waited) == 2 && ran != 0;
  std::fclose(file);
  return is_told ? waited : not_told;
}

std::uint32_t frequency_khz(int core) noexcept {
  char name[96];
  *fmt::format_to_n(name, sizeof name - 1, "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", core).out = '\0';
  std::FILE* const file = std::fopen(name, "re");
  if (file == nullptr) return 0;
  std::uint32_t khz = 0;
  if (std::fscanf(file, "%" SCNu32, &khz) != 1) khz = 0;
  std::fclose(file);
  return khz;
}

trace::Usage now() noexcept {
  rusage own{};
  getrusage(RUSAGE_SELF, &own);
  const auto count = [](long value) { return static_cast<std::uint64_t>(std::max(value, 0L)); };
  return {.wall_ns = clock::monotonic_ns(),
          .user_ns = ns_of(own.ru_utime),
          .system_ns = ns_of(own.ru_stime),
          .core_wait_ns = core_wait_ns(),
          .voluntary_switches = count(own.ru_nvcsw),
          .involuntary_switches = count(own.ru_nivcsw),
          .minor_faults = count(own.ru_minflt),
          .major_faults = count(own.ru_majflt),
          .peak_bytes = count(own.ru_maxrss) * 1024,
          .core = -1,
          .core_khz = 0};
}

}  // namespace

void UsageMeter::start() noexcept {
  begin_ = now();
}

trace::Usage UsageMeter::so_far() const noexcept {
  trace::Usage usage = now();
  usage.wall_ns = std::max<std::uint64_t>(usage.wall_ns - begin_.wall_ns, 1);
  usage.user_ns -= begin_.user_ns;
  usage.system_ns -= begin_.system_ns;
  if (begin_.core_wait_ns == not_told || usage.core_wait_ns == not_told)
    usage.core_wait_ns = not_told;
  else
    usage.core_wait_ns -= begin_.core_wait_ns;
  usage.voluntary_switches -= begin_.voluntary_switches;
  usage.involuntary_switches -= begin_.involuntary_switches;
  usage.minor_faults -= begin_.minor_faults;
  usage.major_faults -= begin_.major_faults;
  usage.core = sched_getcpu();
  if (usage.core >= 0) usage.core_khz = frequency_khz(usage.core);
  return usage;
}

}  // namespace papaya
