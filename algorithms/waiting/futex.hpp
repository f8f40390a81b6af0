// The kernel's wait queue on a 32-bit word in shared memory, across processes.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>

namespace papaya {

enum class Sleep { none, until_woken, until_timeout };

// Sleeps while `word` is `expected`, at most `timeout_ns`. May return early; the caller looks again.
inline Sleep futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t timeout_ns) noexcept {
  const timespec timeout{static_cast<time_t>(timeout_ns / 1000000000u), static_cast<long>(timeout_ns % 1000000000u)};
  if (syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, expected, &timeout, nullptr, 0) == 0)
    return Sleep::until_woken;
  return errno == EAGAIN ? Sleep::none : Sleep::until_timeout;
}

inline void futex_wake_all(std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace papaya
