// What a trial may cost (trial.hpp): a share of the run's time, of which all trials of a process lose by calls that
// take longer than they would, by set-ups and by exchanges.
//
// Equal on all ranks: it changes by what was exchanged, and by calls that all have made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace papaya::tuning {

class TrialBudget {
 public:
  // `share`: of the run's time, in millionths. `set_up_ns`: of a candidate, guessed, as long as no rank has measured
  // any.
  TrialBudget(std::int64_t share, std::int64_t set_up_ns) noexcept;
  // Of a trial of a part of the calls: nothing is spent, and no call made.
  void begin_anew() noexcept;

  // What a rank knows by itself.
  struct Own {
    std::int64_t elapsed_ns;    // of the run
    std::int64_t exchange_ns;   // that the last exchange took
    std::int64_t elsewhere_ns;  // lost by other trials of its process
    std::int64_t trials;        // of its process, which share what may be lost
    std::int64_t set_up_ns;     // of a candidate, its waiting for others included; the largest number: not known
    std::int64_t others_ns;     // that calls of other trials take in all
  };
  // As numbers whose largest over the ranks take() wants.
  static constexpr std::size_t numbers = 6;
  static void add(const Own& own, std::vector<std::int64_t>& largest);
  // `calls`: made so far. `foreseen_ns`: to be lost yet by other trials of the communicator that are under way; equal
  // on all ranks.
  void take(std::span<const std::int64_t, numbers> largest, std::int64_t calls, std::int64_t foreseen_ns) noexcept;

  // So many calls were made, of which each takes `cost_ns`.
  void note_calls(std::int64_t calls, std::int64_t cost_ns) noexcept { calls_ns_ = calls * cost_ns; }
  std::int64_t calls_ns() const noexcept { return calls_ns_; }
  void spend(std::int64_t ns) noexcept { spent_ns_ += ns; }
  std::int64_t spent_ns() const noexcept { return spent_ns_; }

  std::int64_t set_up_ns() const noexcept { return set_up_ns_; }
  std::int64_t exchange_ns() const noexcept { return exchange_ns_; }
  // Not after the first exchange, whose cost goes into the next. Of MPI's ranks without a core one takes a thousand
  // times as long as usual.
  bool knows_exchange() const noexcept { return knows_exchange_; }
  bool may_lose(std::int64_t ns) const noexcept;
  // By far: what is known has to do.
  bool is_used_up() const noexcept { return spent_ns_ + elsewhere_ns_ > 4 * allowance_ns(); }
  // Calls that take so much are a part of the run in which something is to be won.
  bool are_worth_trying(std::int64_t cost_ns) const noexcept;
  std::int64_t calls_between_checks() const noexcept;

 private:
  std::int64_t allowance_ns() const noexcept { return elapsed_ns_ / 1'000'000 * share_; }
  std::int64_t own_allowance_ns() const noexcept;

  std::int64_t share_;
  std::int64_t set_up_ns_;
  std::int64_t elapsed_ns_ = 0;  // at the last exchange
  std::int64_t calls_then_ = 0;
  std::int64_t period_ns_ = 0;  // from call to call
  bool knows_exchange_ = false;
  std::int64_t exchange_ns_ = 0;
  std::int64_t spent_ns_ = 0;
  std::int64_t elsewhere_ns_ = 0;
  std::int64_t calls_ns_ = 0;
  std::int64_t others_ns_ = 0;
  std::int64_t foreseen_ns_ = 0;
  std::int64_t sharers_ = 1;  // trials of the rank that has most
};

}  // namespace papaya::tuning
