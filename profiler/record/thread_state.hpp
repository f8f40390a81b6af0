// What the system says of a thread of this process.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

namespace papaya {

// The system call in which it sleeps, where its stack ends, and the instruction after the call.
struct Sleep {
  long system_call;
  std::uintptr_t stack;
  std::uintptr_t address;
  auto operator<=>(const Sleep&) const = default;
};
// None: it runs, or has ended.
std::optional<Sleep> sleep_of(std::int32_t thread) noexcept;

// How often it has gone to sleep.
std::optional<std::uint64_t> sleeps_of(std::int32_t thread) noexcept;

// Bit n - 1: it takes no signal n.
std::uint64_t blocked_signals(std::int32_t thread) noexcept;

}  // namespace papaya
