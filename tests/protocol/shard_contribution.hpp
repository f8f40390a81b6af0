// What is wrong with a result that is in shards.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "algorithms/weak/ssp_sharded.hpp"
#include "tests/protocol/ssp_contribution.hpp"

namespace papaya {

// Null for nothing. Contributions of others may be newer than the call, by the slack at most: then they needed this
// rank's of this call.
inline const char* fault_in_shards(std::span<const Contribution> result, const SspSharded& one, std::uint64_t clock,
                                   int rank) {
  const WeakStatus& status = one.status();
  const SspShards& shards = one.shards();
  if (status.clock != clock) return "the status is of another call";
  if (status.oldest + shards.slack() < clock) return "the status admits data older than the slack";
  if (status.ranks != shards.ranks()) return "the status is of fewer ranks";
  if (result.empty()) return nullptr;
  std::uint64_t oldest = clock;
  std::uint64_t own = clock;
  for (int shard = 0; shard < shards.size(); ++shard) {
    const auto part = result.subspan(shards.first(shard), shards.elements(shard));
    if (part.empty()) return "a shard without elements";
    const Contribution& all = part.front();
    if (std::any_of(part.begin(), part.end(), [&](const Contribution& other) { return other != all; }))
      return "a torn message";
    if (all.ranks != (1 << shards.ranks()) - 1) return "a contribution is missing, or in there twice";
    const auto* const last = all.clocks.begin() + shards.ranks();
    const std::uint64_t in_shard = *std::min_element(all.clocks.begin(), last);
    if (in_shard + shards.slack() < clock) return "a contribution older than the slack";
    if (in_shard == 0) return "a contribution of no call";
    if (*std::max_element(all.clocks.begin(), last) > clock + shards.slack())
      return "a contribution newer than its rank can have come";
    if (all.clocks[static_cast<std::size_t>(rank)] != one.own_of(shard)) return "the own contribution is another one";
    if (shards.is_consistent() && all != result.front()) return "shards of different contributions";
    oldest = std::min(oldest, in_shard);
    own = std::min(own, one.own_of(shard));
    if (shards.is_consistent()) continue;
    const WeakPortion& portion = one.portions()[static_cast<std::size_t>(shard)];
    if (portion.begin != shards.first(shard) || portion.oldest != in_shard || portion.own != one.own_of(shard))
      return "the shard's portion tells another thing";
  }
  if (one.portions().size() != (shards.is_consistent() ? 0 : static_cast<std::size_t>(shards.size())))
    return "portions that are no shards";
  if (own != status.own) return "the status does not tell the own contribution";
  if (oldest != status.oldest) return "the status does not tell the oldest contribution";
  return nullptr;
}

}  // namespace papaya
