// Data for weakly consistent reductions: every value tells which ranks' contributions are in it and of which clocks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "algorithms/datatype.hpp"
#include "algorithms/weak/weak.hpp"

namespace papaya {

// Contributions of the ranks from `first` to `last`, combined. Only neighbours may be, the lower ranks on the left: so
// each is in there once, and in the order of ranks.
struct Contribution {
  static constexpr std::size_t most_ranks = 8;
  std::int16_t first;
  std::int16_t last;
  std::array<std::uint16_t, most_ranks> clocks;
  bool operator==(const Contribution&) const = default;

  static Contribution of(int rank, std::uint64_t clock) {
    Contribution one{static_cast<std::int16_t>(rank), static_cast<std::int16_t>(rank), {}};
    one.clocks[static_cast<std::size_t>(rank)] = static_cast<std::uint16_t>(clock);
    return one;
  }
  static Contribution combine(const Contribution& left, const Contribution& right) {
    if (left.last + 1 != right.first || left.first < 0) return {-1, -1, {}};  // stays so
    Contribution both{left.first, right.last, {}};
    for (std::size_t rank = 0; rank < most_ranks; ++rank)
      both.clocks[rank] = static_cast<int>(rank) <= left.last ? left.clocks[rank] : right.clocks[rank];
    return both;
  }

  static Reduction reduction() {
    Reduction reduction;
    reduction.element_bytes = sizeof(Contribution);
    reduction.commutative = false;
    reduction.combine = [](const Reduction&, const void* left, const void* right, void* out, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i)
        static_cast<Contribution*>(out)[i] =
            combine(static_cast<const Contribution*>(left)[i], static_cast<const Contribution*>(right)[i]);
    };
    return reduction;
  }
};

// What is wrong with a rank's result of a call; null for nothing. A message of which a part was overwritten has
// elements that differ.
inline const char* fault_in(const std::vector<Contribution>& result, const WeakStatus& status, std::uint64_t clock,
                            std::uint64_t slack, int rank, int ranks) {
  if (status.clock != clock) return "the status is of another call";
  if (status.oldest + slack < clock) return "the status admits data older than the slack";
  if (status.ranks != ranks) return "the status is of fewer ranks";
  if (result.empty()) return nullptr;
  const Contribution& all = result.front();
  if (std::any_of(result.begin(), result.end(), [&](const Contribution& one) { return one != all; }))
    return "a torn message";
  if (all.first != 0 || all.last != ranks - 1) return "a contribution is missing, or in there twice";
  const auto* const end = all.clocks.begin() + ranks;
  const std::uint64_t oldest = *std::min_element(all.clocks.begin(), end);
  if (oldest + slack < clock) return "a contribution older than the slack";
  if (oldest == 0) return "a contribution of no call";
  if (*std::max_element(all.clocks.begin(), end) > clock) return "a contribution newer than the call";
  if (all.clocks[static_cast<std::size_t>(rank)] != status.own) return "the status does not tell the own contribution";
  if (oldest != status.oldest) return "the status does not tell the oldest contribution";
  return nullptr;
}

}  // namespace papaya
