#include "tools/bench/weak_data.hpp"

#include <algorithm>
#include <cmath>

namespace papaya::bench {

namespace {

// An element of a contribution is rank_unit times the rank's number from 1, the clock, and i modulo the ripple. In a
// sum the three tell whose contributions are in it, how old they are, and how many.
constexpr double rank_unit = 0x1p32;
constexpr std::size_t ripple = 16;
constexpr double untouched = -1;

double numbers_of(int ranks) {
  return 0.5 * ranks * (ranks + 1.0);
}

// A sparse allreduce picks the largest: these differ.
double varied(std::uint64_t clock, int rank, std::size_t i) {
  const std::uint64_t mixed =
      (clock * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(rank) * 0xff51afd7ed558ccdu + i) * 0xc4ceb9fe1a85ec53u;
  return static_cast<double>((mixed >> 40) % 2001) - 1000;
}

}  // namespace

WeakData::WeakData(WeakCollective collective, const WeakCandidate& candidate, bool of_ranks, int rank, int ranks,
                   int root, std::size_t count)
    : collective_(collective),
      candidate_(candidate),
      of_ranks_(of_ranks),
      rank_(rank),
      ranks_(ranks),
      root_(root),
      contribution_(count),
      result_(count),
      brought_(has_totals() ? count : 0),
      received_(has_totals() ? count : 0) {}

double WeakData::element(int rank, std::size_t i) const noexcept {
  return rank_unit * (rank + 1.0) + static_cast<double>(clock_) + static_cast<double>(i % ripple);
}

void WeakData::fill() {
  ++clock_;
  std::fill(result_.begin(), result_.end(), untouched);
  for (std::size_t i = 0; i < contribution_.size(); ++i)
    contribution_[i] = has_totals() ? varied(clock_, rank_, i) : element(rank_, i);
  for (std::size_t i = 0; i < brought_.size(); ++i) brought_[i] += contribution_[i];
}

bool WeakData::check(const WeakOutcome& outcome) {
  if (outcome.clock != clock_) return false;
  for (std::size_t i = 0; i < received_.size(); ++i) received_[i] += result_[i];
  switch (collective_) {
    case WeakCollective::ssp_allreduce:
      return is_ssp(outcome);
    case WeakCollective::threshold_bcast:
      return is_broadcast(outcome);
    case WeakCollective::threshold_reduce:
      return is_reduction(outcome);
    case WeakCollective::sparse_allreduce:
      return true;  // by its totals
    case WeakCollective::partial_allreduce:
    case WeakCollective::group_allreduce:
      break;
  }
  return is_sum_of_some();
}

// One contribution of every rank, none older than the slack, nor than the call says. Others' may be newer than the
// call: who has this rank's of this clock leaves calls up to `slack` later, and brings to the next.
bool WeakData::is_ssp(const WeakOutcome& outcome) const noexcept {
  const auto slack = static_cast<std::uint64_t>(candidate_.slack.value_or(0));
  if (outcome.ranks != ranks_ || outcome.oldest < 1 || outcome.oldest > clock_ || outcome.oldest + slack < clock_)
    return false;
  const double lowest = static_cast<double>(outcome.oldest) * ranks_;
  const double highest = static_cast<double>(slack == 0 ? clock_ : clock_ + slack + 1) * ranks_;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < result_.size(); ++i) {
    const double clocks = result_[i] - rank_unit * numbers_of(ranks_) - static_cast<double>(i % ripple) * ranks_;
    wrong += clocks >= lowest && clocks <= highest ? 0 : 1;
  }
  return wrong == 0;
}

bool WeakData::is_enough(const WeakOutcome& outcome) const noexcept {
  const double part = of_ranks_ ? outcome.ranks : static_cast<double>(outcome.elements);
  const double whole = of_ranks_ ? ranks_ : static_cast<double>(result_.size());
  return part >= candidate_.share.value_or(1) * whole - 1e-9;
}

bool WeakData::is_broadcast(const WeakOutcome& outcome) const noexcept {
  if (!is_enough(outcome)) return false;
  if (of_ranks_ && outcome.elements != 0 && outcome.elements != result_.size()) return false;
  if (rank_ == root_) return true;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < result_.size(); ++i)
    wrong += result_[i] == (i < outcome.elements ? element(root_, i) : untouched) ? 0 : 1;
  return wrong == 0;
}

bool WeakData::is_reduction(const WeakOutcome& outcome) const noexcept {
  if (rank_ != root_) return true;
  if (!is_enough(outcome) || (of_ranks_ && outcome.elements != result_.size())) return false;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < result_.size(); ++i) {
    const double rest = result_[i] - (static_cast<double>(clock_) + static_cast<double>(i % ripple)) * outcome.ranks;
    // Whoever takes part, some of these numbers.
    const double numbers = rest / rank_unit;
    const bool is_right =
        i >= outcome.elements ? result_[i] == untouched
        : outcome.ranks == ranks_
            ? numbers == numbers_of(ranks_)
            : numbers == std::floor(numbers) && numbers >= numbers_of(outcome.ranks) && numbers <= numbers_of(ranks_);
    wrong += is_right ? 0 : 1;
  }
  return wrong == 0;
}

// A weighted sum of contributions, the same for all elements: what holds whatever the ranks have had in it.
bool WeakData::is_sum_of_some() const noexcept {
  if (result_.size() < 2) return result_.empty() || result_[0] >= 0;
  const double weight = result_[1] - result_[0];
  std::size_t wrong = weight >= 0 ? 0 : 1;
  for (std::size_t i = 0; i < result_.size(); ++i) {
    const double expected = result_[0] + static_cast<double>(i % ripple) * weight;
    wrong += std::abs(result_[i] - expected) <= 1e-12 * std::abs(expected) ? 0 : 1;
  }
  // Above rank_unit: some rank's number each.
  wrong += result_[0] >= weight * rank_unit && result_[0] < weight * rank_unit * (ranks_ + 1.0) ? 0 : 1;
  return wrong == 0 || (weight == 0 && result_[0] == 0);
}

}  // namespace papaya::bench
