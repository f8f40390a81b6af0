// Data for partial allreduces: every value tells of which calls each rank's contributions are in it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "algorithms/datatype.hpp"
#include "algorithms/weak/weak.hpp"

namespace papaya {

// Of each rank the contributions of consecutive calls, each in there once.
struct PartialContribution {
  static constexpr std::size_t most_ranks = 8;
  struct Calls {
    std::uint32_t first;  // 0: none
    std::uint32_t last;
    bool operator==(const Calls&) const = default;
  };
  static constexpr Calls wrong{~std::uint32_t{0}, 0};
  std::array<Calls, most_ranks> of_rank;
  bool operator==(const PartialContribution&) const = default;

  static PartialContribution of(int rank, std::uint64_t clock) {
    PartialContribution one{};
    one.of_rank[static_cast<std::size_t>(rank)] = {static_cast<std::uint32_t>(clock),
                                                   static_cast<std::uint32_t>(clock)};
    return one;
  }
  // Those of a rank may come in two operands if they are neighbours, the earlier on the left.
  static Calls combine(const Calls& left, const Calls& right) {
    if (left == wrong || right == wrong) return wrong;
    if (left.first == 0) return right;
    if (right.first == 0) return left;
    return left.last + 1 == right.first ? Calls{left.first, right.last} : wrong;
  }
  static PartialContribution combine(const PartialContribution& left, const PartialContribution& right) {
    PartialContribution both{};
    for (std::size_t rank = 0; rank < most_ranks; ++rank)
      both.of_rank[rank] = combine(left.of_rank[rank], right.of_rank[rank]);
    return both;
  }
  static Reduction reduction() {
    Reduction reduction;
    reduction.element_bytes = sizeof(PartialContribution);
    reduction.combine = [](const Reduction&, const void* left, const void* right, void* out, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i)
        static_cast<PartialContribution*>(out)[i] = combine(static_cast<const PartialContribution*>(left)[i],
                                                            static_cast<const PartialContribution*>(right)[i]);
    };
    return reduction;
  }
};

// Of one rank: sees all results, in order, and at the end what is left.
class PartialLedger {
 public:
  PartialLedger(int rank, int ranks) : rank_(rank), ranks_(ranks), used_(static_cast<std::size_t>(ranks)) {}

  // What is wrong with the result of a call; null for nothing.
  const char* fault_in(std::span<const PartialContribution> result, const WeakStatus& status, std::uint64_t clock) {
    if (status.clock != clock) return "the status is of another call";
    if (status.unused != clock - std::max(used_[static_cast<std::size_t>(rank_)], std::uint64_t{status.own}))
      return "the status does not tell what is unused";
    if (result.empty()) {
      used_[static_cast<std::size_t>(rank_)] = std::max(used_[static_cast<std::size_t>(rank_)], status.own);
      return nullptr;
    }
    const PartialContribution& all = result.front();
    if (std::any_of(result.begin(), result.end(), [&](const auto& one) { return one != all; })) return "a torn result";
    int present = 0;
    int brought = 0;
    std::uint64_t oldest = clock;
    for (int rank = 0; rank < ranks_; ++rank) {
      const auto [first, last] = all.of_rank[static_cast<std::size_t>(rank)];
      if (rank == rank_ && last != status.own) return "the status does not tell the own contribution";
      if (first == 0) continue;
      std::uint64_t& used = used_[static_cast<std::size_t>(rank)];
      if (first != used + 1) return "a contribution is lost, or in there twice";
      if (last > clock) return "a contribution newer than the call";
      used = last;
      ++present;
      brought += last == clock ? 1 : 0;
      oldest = std::min<std::uint64_t>(oldest, first);
    }
    if (brought == 0) return "nobody brought anything to the call";
    if (status.ranks != present) return "the status does not tell how many ranks took part";
    if (status.oldest != oldest) return "the status does not tell the oldest contribution";
    // The same contributions on all ranks: the next ones would not fit.
    return nullptr;
  }

  // After the last call.
  const char* fault_at_end(std::span<const PartialContribution> left, std::uint64_t withdrawn,
                           const WeakStatus& status) const {
    if (withdrawn != status.unused) return "the status does not tell what is left";
    if (withdrawn == 0) return nullptr;
    for (const PartialContribution& one : left) {
      const auto [first, last] = one.of_rank[static_cast<std::size_t>(rank_)];
      if (first != used_[static_cast<std::size_t>(rank_)] + 1 || last != status.clock)
        return "what is left is not what is unused";
    }
    return nullptr;
  }
  std::uint64_t used(int rank) const { return used_[static_cast<std::size_t>(rank)]; }

 private:
  const int rank_;
  const int ranks_;
  std::vector<std::uint64_t> used_;  // of each rank the last call whose contribution has been in a result
};

}  // namespace papaya
