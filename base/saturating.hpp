// Sizes that a program's own numbers make: where 64 bits do not hold one it stays at the largest, which nothing takes
// for a size that fits.
#pragma once

#include <cstdint>
#include <limits>

namespace papaya::saturating {

constexpr std::uint64_t product(std::uint64_t left, std::uint64_t right) noexcept {
  std::uint64_t result = 0;
  return __builtin_mul_overflow(left, right, &result) ? std::numeric_limits<std::uint64_t>::max() : result;
}

constexpr std::uint64_t sum(std::uint64_t left, std::uint64_t right) noexcept {
  std::uint64_t result = 0;
  return __builtin_add_overflow(left, right, &result) ? std::numeric_limits<std::uint64_t>::max() : result;
}

}  // namespace papaya::saturating
