// What holds for the results of group allreduces.
#pragma once

#include <algorithm>
#include <span>

#include "algorithms/weak/wait_avoiding_group.hpp"
#include "tests/protocol/ssp_contribution.hpp"

namespace papaya {

// What is wrong with a rank's result of a call, the number of which is its clock; null for nothing.
inline const char* fault_in_group(std::span<const Contribution> result, const WeakStatus& status, std::uint64_t clock,
                                  int rank, const GroupShape& shape) {
  int members = 0;
  unsigned expected = 0;
  for (int other = 0; other < shape.ranks; ++other)
    if (shape.group_of(other, clock) == shape.group_of(rank, clock)) {
      ++members;
      expected |= 1u << other;
    }
  // In calls of all ranks everybody's contribution is of that call.
  const std::uint64_t last_of_all = clock - (clock - 1) % shape.period;
  if (status.clock != clock) return "the status is of another call";
  if (status.ranks != members) return "the status does not tell how many ranks took part";
  if (status.oldest < last_of_all) return "the status admits a contribution of before the last call of all ranks";
  if (result.empty()) return nullptr;
  const Contribution& all = result.front();
  if (std::any_of(result.begin(), result.end(), [&](const Contribution& one) { return one != all; }))
    return "a torn result";
  if (all.ranks != expected) return "not one contribution of each member";
  if (all.clocks[static_cast<std::size_t>(rank)] != status.own) return "the status does not tell the own contribution";
  std::uint64_t oldest = clock;
  std::uint64_t newest = 0;
  for (int other = 0; other < shape.ranks; ++other) {
    if ((expected >> other & 1) == 0) continue;
    oldest = std::min<std::uint64_t>(oldest, all.clocks[static_cast<std::size_t>(other)]);
    newest = std::max<std::uint64_t>(newest, all.clocks[static_cast<std::size_t>(other)]);
  }
  if (newest != clock) return "nobody brought anything to the call, or something newer";
  if (oldest != status.oldest) return "the status does not tell the oldest contribution";
  return nullptr;
}

}  // namespace papaya
