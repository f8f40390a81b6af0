// Data for weakly consistent reductions: every value tells which ranks' contributions are in it and of which clocks.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "algorithms/datatype.hpp"
#include "algorithms/weak/weak.hpp"

namespace papaya {

// Contributions of several ranks, combined, each in there once.
struct Contribution {
  static constexpr std::size_t most_ranks = 8;
  std::uint16_t ranks;  // a bit for each; 0: something went wrong
  std::array<std::uint16_t, most_ranks> clocks;
  bool operator==(const Contribution&) const = default;

  static Contribution of(int rank, std::uint64_t clock) {
    Contribution one{static_cast<std::uint16_t>(1 << rank), {}};
    one.clocks[static_cast<std::size_t>(rank)] = static_cast<std::uint16_t>(clock);
    return one;
  }
  static Contribution combine(const Contribution& left, const Contribution& right) {
    if (left.ranks == 0 || right.ranks == 0 || (left.ranks & right.ranks) != 0) return {};  // stays so
    Contribution both{static_cast<std::uint16_t>(left.ranks | right.ranks), {}};
    for (std::size_t rank = 0; rank < most_ranks; ++rank)
      both.clocks[rank] = static_cast<std::uint16_t>(left.clocks[rank] + right.clocks[rank]);
    return both;
  }
  // Only neighbours, the lower ranks on the left: so they are in the order of ranks.
  static Contribution combine_in_order(const Contribution& left, const Contribution& right) {
    if (std::bit_width(left.ranks) != std::countr_zero(right.ranks)) return {};
    return combine(left, right);
  }

  static Reduction reduction(bool is_commutative = false) {
    Reduction reduction;
    reduction.element_bytes = sizeof(Contribution);
    reduction.commutative = is_commutative;
    reduction.combine = is_commutative ? each<combine> : each<combine_in_order>;
    return reduction;
  }

 private:
  template <Contribution (*both)(const Contribution&, const Contribution&)>
  static void each(const Reduction&, const void* left, const void* right, void* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      static_cast<Contribution*>(out)[i] =
          both(static_cast<const Contribution*>(left)[i], static_cast<const Contribution*>(right)[i]);
  }
};

// What is wrong with a portion of a rank's result of a call; null for nothing. A message of which a part was
// overwritten has elements that differ.
inline const char* fault_in(std::span<const Contribution> result, std::uint64_t oldest, std::uint64_t own,
                            std::uint64_t clock, std::uint64_t slack, int rank, int ranks) {
  if (oldest + slack < clock) return "the status admits data older than the slack";
  if (result.empty()) return nullptr;
  const Contribution& all = result.front();
  if (std::any_of(result.begin(), result.end(), [&](const Contribution& one) { return one != all; }))
    return "a torn message";
  if (all.ranks != (1 << ranks) - 1) return "a contribution is missing, or in there twice";
  const auto* const end = all.clocks.begin() + ranks;
  const std::uint64_t least = *std::min_element(all.clocks.begin(), end);
  if (least + slack < clock) return "a contribution older than the slack";
  if (least == 0) return "a contribution of no call";
  if (*std::max_element(all.clocks.begin(), end) > clock) return "a contribution newer than the call";
  if (all.clocks[static_cast<std::size_t>(rank)] != own) return "the status does not tell the own contribution";
  if (least != oldest) return "the status does not tell the oldest contribution";
  return nullptr;
}

// The same for all of it.
inline const char* fault_in(std::span<const Contribution> result, const Weak& weak, std::uint64_t clock,
                            std::uint64_t slack, int rank, int ranks) {
  const WeakStatus& status = weak.status();
  if (status.clock != clock) return "the status is of another call";
  if (status.ranks != ranks) return "the status is of fewer ranks";
  const std::span<const WeakPortion> portions = weak.portions();
  if (portions.empty()) return fault_in(result, status.oldest, status.own, clock, slack, rank, ranks);
  std::uint64_t oldest = clock;
  std::uint64_t own = clock;
  for (std::size_t i = 0; i < portions.size(); ++i) {
    const WeakPortion& one = portions[i];
    const std::size_t end = i + 1 < portions.size() ? portions[i + 1].begin : result.size();
    if (end < one.begin || (i == 0 && one.begin != 0)) return "portions that do not make up the result";
    oldest = std::min(oldest, one.oldest);
    own = std::min(own, one.own);
    const char* const found =
        fault_in(result.subspan(one.begin, end - one.begin), one.oldest, one.own, clock, slack, rank, ranks);
    if (found != nullptr) return found;
  }
  if (oldest != status.oldest || own != status.own) return "the status does not tell the oldest of all portions";
  return nullptr;
}

}  // namespace papaya
