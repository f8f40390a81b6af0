// Random numbers that depend on nothing but a seed and their place: every rank can make each of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace kmeans {

// The finaliser of splitmix64.
constexpr std::uint64_t mix(std::uint64_t value) noexcept {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
  value = (value ^ value >> 27) * 0x94D049BB133111EB;
  return value ^ value >> 31;
}

class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t place = 0) noexcept : state_(mix(mix(seed) ^ place)) {}

  std::uint64_t next() noexcept { return mix(state_++); }
  double uniform() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }
  std::uint64_t below(std::uint64_t limit) noexcept { return next() % limit; }
  double normal() noexcept {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t state_;
};

}  // namespace kmeans
