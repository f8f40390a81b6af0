#include "tuning/trial.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <utility>

namespace papaya::tuning {

namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

// Calls of a block. The first of them is not compared: caches, the set-up, and whom the exchange has aligned. The first
// round only finds out, at little cost, who is out of the question.
constexpr std::int64_t warm_up = 1;
constexpr std::int64_t first_block = warm_up + 2;
constexpr std::int64_t later_block = warm_up + 5;
constexpr std::int64_t check = 8;
constexpr std::int64_t out_of_the_question = 3;  // times as slow as the quickest
// A candidate that has served no call by then is not set up on all ranks, and will not be.
constexpr int rounds_of_idle = 3;
// Calls until the second look at what seems to have changed, and until the first after a trial.
constexpr std::int64_t second_look = 32;
// A trial may cost so many times what was foreseen, until its first round has shown it: where ranks do not have their
// cores a call may take a thousand times as long as the one before.
constexpr std::int64_t caution = 10;
// As long as they are not known.
constexpr std::int64_t usual_candidates = 3;
// Unless something changes, so many times the calls of a trial lie between it and the next; as long as trials confirm
// the choice, twice as many each time, up to the largest.
constexpr std::int64_t least_patience = 100;
constexpr std::int64_t largest_patience = least_patience << 8;
// Below this nobody is called slower or changed.
constexpr std::int64_t noise_ns = 100;
// The candidate in use is measured in so many at least: that costs nothing, as it would serve anyway.
constexpr int fewest_rounds_for_change = 4;

// A call is skewed if its ranks arrive over a longer time than it takes.
bool is_skewed(const MeasuredCall& call) noexcept {
  return call.spread_ns > 2 * std::max<std::int64_t>(call.cost_ns, 1000);
}

// The numbers of sample `i`.
template <std::size_t per_sample>
std::span<const std::int64_t, per_sample> of_sample(std::span<const std::int64_t> numbers, std::size_t i) noexcept {
  return numbers.subspan(per_sample * i).first<per_sample>();
}

}  // namespace

Trial::Trial(const Terms& terms)
    : list_(terms.candidates),
      in_use_(terms.in_use),
      budget_(terms.share, terms.set_up_ns),
      clocks_(terms.clocks),
      lacks_candidates_(terms.lacks_candidates),
      next_(lacks_candidates_ ? first_look_if_lacking : first_look),
      current_(terms.in_use),
      patience_(least_patience) {
  reserve();
}

// What follows is done inside the program's calls, where nothing may fail.
void Trial::reserve() {
  blocks_.reserve(list_.size());
  kept_.reserve(std::max(list_.size() * later_block, std::size_t{check}));
  for (Candidate& one : list_) one.costs.reserve(most_rounds * later_block);
  seen_.reserve(most_seen);
}

Trial Trial::part() const {
  Trial one = *this;
  for (Candidate& candidate : one.list_) {
    candidate.costs.clear();
    candidate.is_left = !candidate.failed;
  }
  one.reserve();
  one.budget_.begin_anew();
  one.calls_ = one.next_trial_ = one.changes_ = 0;
  one.wants_exchange_ = one.notes_all_ = false;
  one.usual_cost_ns_ = -1;
  one.usual_pattern_ = 0;
  one.changed_checks_ = 0;
  one.patience_ = least_patience;
  one.rest(first_look);
  return one;
}

void Trial::serve_by(std::size_t candidate, bool measured, std::int64_t calls) noexcept {
  if (candidate != current_) ++generation_;
  current_ = candidate;
  measured_ = measured;
  noted_ = measured || notes_all_;
  next_ = calls == never ? never : calls_ + calls;
}

void Trial::rest(std::int64_t calls) noexcept {
  phase_ = Phase::rest;
  serve_by(in_use_, false, calls);
}

void Trial::begin_blocks(Phase phase) noexcept {
  phase_ = phase;
  std::size_t calls = 0;
  for (const Block& one : blocks_) calls += static_cast<std::size_t>(one.calls);
  kept_.assign(calls, {});
  measured_calls_ = 0;
  block_ = 0;
  serve_by(blocks_.front().candidate, true, blocks_.front().calls);
}

void Trial::begin_check() noexcept {
  blocks_.assign(1, {in_use_, check});
  begin_blocks(Phase::check);
}

void Trial::begin_trial() {
  for (Candidate& one : list_) {
    one.costs.clear();
    one.is_left = !one.failed;
  }
  round_ = 0;
  // No call that is measured has those of calls with a root.
  if (trials_ == 0 && clocks_ == Clocks::several_rooted) budget_.spend(set_ups_ns(std::ssize(list_)));
  spent_before_trial_ns_ = budget_.spent_ns();
  foreseen_ns_ = next_trial_ns();
  calls_before_trial_ = calls_;
  begin_round();
}

void Trial::begin_round() {
  blocks_.clear();
  // Each round begins with another candidate, so that none always comes after the same.
  for (std::size_t i = 0; i < list_.size(); ++i) {
    const std::size_t candidate = (i + static_cast<std::size_t>(round_)) % list_.size();
    if (list_[candidate].is_left) blocks_.push_back({candidate, round_ == 0 ? first_block : later_block});
  }
  begin_blocks(Phase::round);
}

void Trial::advance() noexcept {
  if (phase_ == Phase::rest) {
    begin_check();
  } else if (++block_ < blocks_.size()) {
    serve_by(blocks_[block_].candidate, true, blocks_[block_].calls);
  } else {
    wants_exchange_ = true;
    ++generation_;
    serve_by(in_use_, false, never);
  }
}

void Trial::keep(std::int64_t slot, std::size_t candidate, const Sample& sample) noexcept {
  if (slot < 0 || static_cast<std::size_t>(slot) >= kept_.size()) return;
  kept_[static_cast<std::size_t>(slot)] = {true, candidate, sample};
}

void Trial::fail(std::size_t candidate) noexcept {
  if (candidate == native) return;  // MPI always can
  list_[candidate].failed = true;
  list_[candidate].is_left = false;
  if (in_use_ == candidate) in_use_ = native;
  if (current_ == candidate) {
    ++generation_;
    current_ = in_use_;
  }
}

void Trial::prefer(std::size_t candidate) noexcept {
  if (candidate >= list_.size() || trials_ > 0 || is_trying() || list_[candidate].failed || candidate == in_use_)
    return;
  in_use_ = current_ = candidate;
  usual_cost_ns_ = -1;
  ++generation_;
}

void Trial::see(const MeasuredCall& call) noexcept {
  if (seen_.size() == most_seen) seen_.erase(seen_.begin());
  seen_.push_back(call);
}

std::vector<std::int64_t> Trial::largest(std::int64_t elapsed_ns, std::int64_t elsewhere_ns, std::int64_t trials,
                                         std::int64_t others_ns) const {
  std::vector<std::int64_t> numbers;
  numbers.reserve(largest_per_sample * kept_.size() + TrialBudget::numbers);
  for (const Kept& one : kept_) add_largest(one.is_there ? &one.sample : nullptr, clocks_, numbers);
  TrialBudget::add({elapsed_ns, exchange_ns_, elsewhere_ns, trials, own_set_up_ns_, others_ns}, numbers);
  return numbers;
}

std::vector<std::int64_t> Trial::sums(std::span<const std::int64_t> largest_of_all, int rank) const {
  std::vector<std::int64_t> numbers;
  numbers.reserve(sums_per_sample * kept_.size());
  for (std::size_t i = 0; i < kept_.size(); ++i)
    add_sums(kept_[i].is_there ? &kept_[i].sample : nullptr, of_sample<largest_per_sample>(largest_of_all, i), clocks_,
             rank, numbers);
  return numbers;
}

void Trial::take(std::span<const std::int64_t> largest_of_all, std::span<const std::int64_t> sums_of_all, int ranks,
                 std::int64_t foreseen_ns) {
  budget_.take(largest_of_all.last<TrialBudget::numbers>(), calls_, foreseen_ns);
  wants_exchange_ = false;
  ++generation_;

  std::vector<CallCost> costs;  // of a check
  std::size_t slot = 0;
  for (const Block& one : blocks_)
    for (std::int64_t call = 0; call < one.calls; ++call, ++slot) {
      const MeasuredCall all = measured(of_sample<largest_per_sample>(largest_of_all, slot),
                                        of_sample<sums_per_sample>(sums_of_all, slot), clocks_, ranks);
      if (!all.is_whole) continue;  // the candidate did not serve it
      if (all.late >= 0) see(all);
      const CallCost cost{all.cost_ns, is_skewed(all), round_};
      if (phase_ == Phase::check) {
        costs.push_back(cost);
      } else {
        // What is in use would have served otherwise.
        if (one.candidate != in_use_) budget_.spend(std::max<std::int64_t>(cost.ns - present_cost_ns_, 0));
        if (call >= warm_up) list_[one.candidate].costs.push_back(cost);
      }
    }
  if (phase_ == Phase::check)
    take_check(costs);
  else
    take_round();
}

void Trial::take_check(const std::vector<CallCost>& costs) {
  if (costs.empty()) {
    // It is not set up on all ranks, so that MPI has served the calls.
    in_use_ = native;
    rest(budget_.calls_between_checks());
    return;
  }
  std::vector<std::int64_t> times;
  std::int64_t skewed = 0;
  for (const CallCost& one : costs) {
    times.push_back(one.ns);
    skewed += one.is_skewed ? 1 : 0;
  }
  const auto of = static_cast<std::int64_t>(costs.size());
  present_cost_ns_ = median(std::move(times));
  budget_.note_calls(calls_, present_cost_ns_);
  if (usual_pattern_ == 0) usual_pattern_ = pattern_;
  if (usual_cost_ns_ < 0) {
    usual_cost_ns_ = present_cost_ns_;
    usually_skewed_ = 2 * skewed > of;
  }
  changed_checks_ = is_changed(present_cost_ns_, skewed, of) ? changed_checks_ + 1 : 0;
  const bool is_due = trials_ == 0 || calls_ >= next_trial_ || changed_checks_ >= 2;
  const bool may_be_tried = list_.size() > 1 && budget_.knows_exchange();
  if (is_due && may_be_tried && may_try())
    begin_trial();
  else
    rest(changed_checks_ == 1 || !budget_.knows_exchange() ? second_look : budget_.calls_between_checks());
}

// The pattern is another if seven of eight calls say so: one that is in between does not go back and forth.
bool Trial::is_changed(std::int64_t cost_ns, std::int64_t skewed, std::int64_t of) const noexcept {
  const std::int64_t others = usually_skewed_ ? of - skewed : skewed;
  const bool is_other = pattern_ != 0 && pattern_ != usual_pattern_;
  return is_other || 8 * others >= 7 * of ||
         10 * std::abs(cost_ns - usual_cost_ns_) > 3 * usual_cost_ns_ + 10 * noise_ns;
}

void Trial::take_round() {
  ++round_;
  if (round_ >= rounds_of_idle) drop_idle_ones();
  drop_slower_ones();
  // Somebody was so slow that what may be lost is used up: what is known has to do.
  if (left() == 1 || round_ == most_rounds || budget_.is_used_up())
    end_trial();
  else
    begin_round();
}

void Trial::drop_idle_ones() noexcept {
  for (std::size_t i = native + 1; i < list_.size(); ++i)
    list_[i].is_left = list_[i].is_left && !list_[i].costs.empty();
}

void Trial::drop_slower_ones() {
  const std::size_t best = quickest();
  if (best == list_.size()) return;
  const std::int64_t least = median(costs_of(best));
  for (std::size_t i = 0; i < list_.size(); ++i) {
    Candidate& one = list_[i];
    if (i == best || !one.is_left || one.costs.empty()) continue;
    if (i == in_use_ && round_ < fewest_rounds_for_change) continue;
    const std::vector<std::int64_t> costs = costs_of(i);
    const std::int64_t lowest = *std::min_element(costs.begin(), costs.end());
    const bool is_out_of_the_question = lowest > out_of_the_question * least + 10 * noise_ns;
    const bool is_clearly_slower = 50 * median(costs) > 51 * least + 50 * noise_ns && is_slower(i, best);
    if (is_out_of_the_question || is_clearly_slower) one.is_left = false;
  }
}

void Trial::end_trial() {
  const std::size_t best = quickest();
  std::size_t winner = in_use_;
  if (best != list_.size() && best != in_use_) {
    const std::vector<std::int64_t> ours = costs_of(in_use_);
    const std::int64_t theirs = median(costs_of(best));
    const bool is_doubtful = (trials_ > 0 && round_ < fewest_rounds_for_change) ||
                             20 * median(ours) <= 21 * theirs + 20 * noise_ns || !is_slower(in_use_, best);
    const bool stays = list_[in_use_].is_left && !ours.empty() && is_doubtful;
    if (!stays) winner = best;
  }
  patience_ = winner == in_use_ && trials_ > 0 ? std::min(2 * patience_, largest_patience) : least_patience;
  if (winner != in_use_) ++changes_;
  in_use_ = winner;
  ++trials_;
  usual_cost_ns_ = -1;
  usual_pattern_ = 0;
  changed_checks_ = 0;
  last_trial_ns_ = budget_.spent_ns() - spent_before_trial_ns_;
  next_trial_ = calls_ + patience_ * (calls_ - calls_before_trial_);
  rest(second_look);
}

// MPI and the candidate in use are set up.
std::int64_t Trial::set_ups_ns(std::int64_t candidates) const noexcept {
  return std::max<std::int64_t>(candidates - (in_use_ == native ? 1 : 2), 0) * budget_.set_up_ns();
}

std::int64_t Trial::trial_ns(std::int64_t candidates) const noexcept {
  return candidates * later_block * present_cost_ns_ + set_ups_ns(candidates) + 4 * budget_.exchange_ns();
}

std::int64_t Trial::next_trial_ns() const noexcept {
  return trials_ > 0 ? last_trial_ns_ : trial_ns(std::ssize(list_));
}

bool Trial::may_try() const noexcept {
  return budget_.may_lose(next_trial_ns());
}

std::int64_t Trial::foreseen_ns() const noexcept {
  if (!is_trying()) return 0;
  const std::int64_t left_ns = foreseen_ns_ - (budget_.spent_ns() - spent_before_trial_ns_);
  return round_ == 0 ? caution * foreseen_ns_ : std::max<std::int64_t>(left_ns, 0);
}

bool Trial::may_pay(std::int64_t preparing_ns) const noexcept {
  return budget_.knows_exchange() && budget_.are_worth_trying(present_cost_ns_) &&
         budget_.may_lose(preparing_ns + trial_ns(usual_candidates));
}

void Trial::admit(std::size_t candidates, std::size_t in_use) {
  list_.resize(candidates);
  in_use_ = current_ = in_use;
  lacks_candidates_ = false;
  ++generation_;
  reserve();
  if (candidates > 1 && budget_.knows_exchange() && may_try()) begin_trial();
}

bool Trial::most_are_skewed() const noexcept {
  std::int64_t balance = 0;
  for (const Candidate& one : list_)
    for (const CallCost& cost : one.costs) balance += cost.is_skewed ? 1 : -1;
  return balance > 0;
}

// What the table or the file says has not proven itself yet.
bool Trial::is_slower(std::size_t candidate, std::size_t than) const {
  const int exceptions = trials_ == 0 && round_ >= fewest_rounds_for_change ? 1 : 0;
  return are_slower(list_[candidate].costs, list_[than].costs, most_are_skewed(), exceptions);
}

// Of those that are left and were measured; candidates() if there is none.
std::size_t Trial::quickest() const {
  std::size_t best = list_.size();
  std::int64_t least = never;
  for (std::size_t i = 0; i < list_.size(); ++i) {
    if (!list_[i].is_left || list_[i].costs.empty()) continue;
    if (const std::int64_t middle = median(costs_of(i)); middle < least) {
      least = middle;
      best = i;
    }
  }
  return best;
}

std::size_t Trial::left() const noexcept {
  const auto is_left = [](const Candidate& one) { return one.is_left; };
  return static_cast<std::size_t>(std::count_if(list_.begin(), list_.end(), is_left));
}

Trial::Standing Trial::standing(std::size_t candidate) const {
  return {median(costs_of(candidate)), list_[candidate].costs.size(), list_[candidate].is_left,
          list_[candidate].failed};
}

}  // namespace papaya::tuning
