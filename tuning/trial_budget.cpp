#include "tuning/trial_budget.hpp"

#include <algorithm>
#include <limits>

namespace papaya::tuning {

namespace {

constexpr std::int64_t most_sharers = 1000;
constexpr std::int64_t longest_ns = 1'000'000'000;  // of one call or exchange, so that products fit
constexpr std::int64_t least_between_checks = 32;
// Of what may be lost by trying, the part for checks.
constexpr std::int64_t part_for_checks = 5;
// Calls that take less than this part of the run have nothing to win that would be seen.
constexpr std::int64_t least_part_of_run = 100;

}  // namespace

TrialBudget::TrialBudget(std::int64_t share, std::int64_t set_up_ns) noexcept
    : share_(std::max<std::int64_t>(share, 1)), set_up_ns_(set_up_ns) {}

void TrialBudget::begin_anew() noexcept {
  calls_then_ = spent_ns_ = calls_ns_ = 0;
}

void TrialBudget::add(const Own& own, std::vector<std::int64_t>& largest) {
  largest.insert(largest.end(),
                 {own.elapsed_ns, -own.exchange_ns, own.elsewhere_ns, own.trials, -own.set_up_ns, own.others_ns});
}

void TrialBudget::take(std::span<const std::int64_t, numbers> largest, std::int64_t calls,
                       std::int64_t foreseen_ns) noexcept {
  if (calls > calls_then_)
    period_ns_ = std::clamp<std::int64_t>((largest[0] - elapsed_ns_) / (calls - calls_then_), 1, longest_ns);
  elapsed_ns_ = largest[0];
  calls_then_ = calls;
  // Of the rank that came last: the others waited for it as they would have anyway.
  knows_exchange_ = largest[1] < 0;
  exchange_ns_ = std::clamp<std::int64_t>(-largest[1], 1000, longest_ns);
  spent_ns_ += exchange_ns_;
  elsewhere_ns_ = largest[2];
  sharers_ = std::clamp<std::int64_t>(largest[3], 1, most_sharers);
  // Of the rank that waited least for the others.
  if (-largest[4] != std::numeric_limits<std::int64_t>::max())
    set_up_ns_ = std::clamp<std::int64_t>(-largest[4], 1000, longest_ns);
  others_ns_ = largest[5];
  foreseen_ns_ = foreseen_ns;
}

// Twice the part that these calls are of all that are followed: where most time passes most is to be won.
std::int64_t TrialBudget::own_allowance_ns() const noexcept {
  const std::int64_t all_ns = std::max<std::int64_t>(calls_ns_ + others_ns_, 1);
  return allowance_ns() / 1000 * std::min<std::int64_t>(2000 * calls_ns_ / all_ns, 1000);
}

bool TrialBudget::may_lose(std::int64_t ns) const noexcept {
  return spent_ns_ + elsewhere_ns_ + foreseen_ns_ + ns <= allowance_ns() && spent_ns_ + ns <= own_allowance_ns();
}

bool TrialBudget::are_worth_trying(std::int64_t cost_ns) const noexcept {
  return least_part_of_run * cost_ns >= period_ns_;
}

std::int64_t TrialBudget::calls_between_checks() const noexcept {
  // The exchanges of all trials take no more than share / part_for_checks of the time.
  const std::int64_t calls =
      exchange_ns_ * part_for_checks * sharers_ * 1'000'000 / share_ / std::max<std::int64_t>(period_ns_, 1);
  return std::max(calls, least_between_checks);
}

}  // namespace papaya::tuning
