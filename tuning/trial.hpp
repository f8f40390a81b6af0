// Online selection: which of several candidates (native MPI, algorithms of papaya) serves the calls of one collective
// and one class of sizes on one communicator, found out with the calls that the program makes.
//
// A trial has rounds. In a round each candidate that is left serves a block of calls, so that candidates alternate; at
// its end the ranks exchange what they measured, and candidates that are slower beyond doubt are dropped. Between
// trials the candidate in use is checked now and then. A trial follows when its cost or the pattern of arrivals has
// changed, and from time to time in any case, as far as the time that trying has cost so far allows.
//
// All ranks decide alike: the state changes by calls, which are the same on all ranks, and by what was exchanged, and
// by nothing else; what a rank itself measured leaves a Trial by largest() and sums() alone. All times are integers, in
// nanoseconds, so that sums do not depend on their order. It knows no MPI, and is tested without
// (tests/unit/trial.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tuning/call_costs.hpp"
#include "tuning/sample_exchange.hpp"
#include "tuning/trial_budget.hpp"

namespace papaya::tuning {

class Trial {
 public:
  // Calls before anything is measured: who calls rarely pays nothing.
  static constexpr std::int64_t first_look = 24;
  static constexpr std::int64_t first_look_if_lacking = 200;
  static constexpr int most_rounds = 7;
  static constexpr std::size_t native = 0;

  struct Terms {
    std::size_t candidates = 1;  // the first of which is native
    std::size_t in_use = 0;      // to begin with
    std::int64_t share = 0;      // of the run's time that may be lost by trying, in millionths
    // The ranks' times are of one clock. If not, as on several nodes, only calls in which all wait for all can be
    // compared: the rank that arrives last is the one that is inside for the shortest time, so that this time is what
    // the call costs.
    Clocks clocks = Clocks::one;
    std::int64_t set_up_ns = 200'000;  // of a candidate: guessed, as long as no rank has measured any
    // The others come by admit(): until then what serves is only checked. That costs more between nodes than within
    // one, so it begins later.
    bool lacks_candidates = false;
  };
  explicit Trial(const Terms& terms);
  // Of a part of these calls, after a trial of all of them: it begins with what serves now, and has a trial of its own
  // as soon as that may be.
  Trial part() const;

  // Who serves the next call.
  std::size_t candidate() const noexcept { return current_; }
  // Counts changes of that, and moments at which an exchange is due: an answer holds as long as this stays.
  std::uint64_t generation() const noexcept { return generation_; }
  // Where to keep the sample of the next call; negative: it is not measured.
  std::int64_t slot() const noexcept { return measured_ ? static_cast<std::int64_t>(measured_calls_) : -1; }
  // The next call is measured, or the owner wants to see each.
  bool is_noted() const noexcept { return noted_; }
  void note_all(bool all) noexcept {
    notes_all_ = all;
    noted_ = measured_ || all;
  }
  // The call has been made, on all ranks.
  void count_call() noexcept {
    if (measured_) ++measured_calls_;
    if (++calls_ >= next_) advance();
  }
  // Of a call that this candidate has served. A slot of an earlier phase is ignored.
  void keep(std::int64_t slot, std::size_t candidate, const Sample& sample) noexcept;

  // Right after an exchange, while candidates are lacking. Whether so much of the run passes in these calls that
  // `preparing_ns`, and a trial after it, may be worth their time, and may be lost by trying.
  bool lacks_candidates() const noexcept { return lacks_candidates_; }
  bool may_pay(std::int64_t preparing_ns) const noexcept;
  // All there are, of which `in_use` serves already; a trial begins if it may.
  void admit(std::size_t candidates, std::size_t in_use);

  // The candidate cannot serve, on any rank.
  void fail(std::size_t candidate) noexcept;

  // The ranks are to exchange what they measured, in the next call that none of them leaves early. Until then the
  // candidate in use serves, unmeasured. Two steps: the largest of the ranks' numbers; with those, the sums. Both have
  // the same length on all ranks. `elapsed_ns`: of the run. `trials` of this rank share what may be lost; the others
  // have cost it `elsewhere_ns`, and their calls take it `others_ns` in all. `foreseen_ns`: of the others of the
  // communicator, equal on all ranks.
  bool wants_exchange() const noexcept { return wants_exchange_; }
  std::vector<std::int64_t> largest(std::int64_t elapsed_ns, std::int64_t elsewhere_ns, std::int64_t trials,
                                    std::int64_t others_ns) const;
  std::vector<std::int64_t> sums(std::span<const std::int64_t> largest_of_all, int rank) const;
  void take(std::span<const std::int64_t> largest_of_all, std::span<const std::int64_t> sums_of_all, int ranks,
            std::int64_t foreseen_ns = 0);
  // What all calls so far take, by those that were measured last.
  std::int64_t calls_ns() const noexcept { return budget_.calls_ns(); }
  // What the exchange took this rank: it goes into the next.
  void note_exchange(std::int64_t ns) noexcept { exchange_ns_ = ns; }

  // What a set-up takes this rank, its waiting for others included: that goes into the next exchange, too. Without it
  // this rank does not know.
  void note_set_up(std::int64_t ns) noexcept { own_set_up_ns_ = ns; }

  // Of the last calls that were measured on all ranks, in the order they were made, up to `most_seen`. Between them
  // others may have been made.
  static constexpr std::size_t most_seen = 32;
  std::span<const MeasuredCall> seen() const noexcept { return seen_; }
  // What the caller makes of them, as a number that differs between patterns of arrivals; 0: not known yet. If it
  // becomes another one, a trial is due.
  void note_pattern(std::int64_t pattern) noexcept { pattern_ = pattern; }
  // Right after an exchange. Who is to serve until a trial has said otherwise.
  void prefer(std::size_t candidate) noexcept;

  // For people.
  struct Standing {
    std::int64_t median_ns = 0;  // in the last trial
    std::size_t samples = 0;
    bool is_left = false;  // was not dropped
    bool failed = false;   // cannot serve
  };
  Standing standing(std::size_t candidate) const;
  std::size_t in_use() const noexcept { return in_use_; }
  bool is_trying() const noexcept { return phase_ == Phase::round; }
  std::size_t candidates() const noexcept { return list_.size(); }
  std::int64_t calls() const noexcept { return calls_; }
  std::int64_t trials() const noexcept { return trials_; }    // that have ended
  std::int64_t changes() const noexcept { return changes_; }  // of the candidate in use
  std::int64_t spent_ns() const noexcept { return budget_.spent_ns(); }
  // What the trial under way is yet to cost, as far as that could be foreseen. Equal on all ranks.
  std::int64_t foreseen_ns() const noexcept;

 private:
  enum class Phase : std::uint8_t { rest, check, round };
  struct Candidate {
    std::vector<CallCost> costs;  // in this trial
    bool is_left = true;
    bool failed = false;
  };
  struct Block {
    std::size_t candidate;
    std::int64_t calls;
  };
  struct Kept {
    bool is_there = false;
    std::size_t candidate = 0;
    Sample sample;
  };
  void reserve();
  void advance() noexcept;
  void rest(std::int64_t calls) noexcept;
  void serve_by(std::size_t candidate, bool measured, std::int64_t calls) noexcept;
  void begin_blocks(Phase phase) noexcept;
  void begin_check() noexcept;
  void begin_trial();
  void begin_round();
  void see(const MeasuredCall& call) noexcept;
  void take_check(const std::vector<CallCost>& costs);
  void take_round();
  void drop_idle_ones() noexcept;
  void drop_slower_ones();
  void end_trial();
  std::int64_t trial_ns(std::int64_t candidates) const noexcept;
  std::int64_t set_ups_ns(std::int64_t candidates) const noexcept;
  std::int64_t next_trial_ns() const noexcept;
  bool may_try() const noexcept;
  bool is_changed(std::int64_t cost_ns, std::int64_t skewed, std::int64_t of) const noexcept;
  bool most_are_skewed() const noexcept;
  std::vector<std::int64_t> costs_of(std::size_t candidate) const {
    return comparable(list_[candidate].costs, most_are_skewed());
  }
  bool is_slower(std::size_t candidate, std::size_t than) const;
  std::size_t quickest() const;
  std::size_t left() const noexcept;

  std::vector<Candidate> list_;
  std::size_t in_use_;
  TrialBudget budget_;
  Clocks clocks_;
  bool lacks_candidates_;

  std::int64_t calls_ = 0;
  std::int64_t next_;  // number of calls at which something changes
  Phase phase_ = Phase::rest;
  std::size_t current_;
  std::uint64_t generation_ = 0;
  bool measured_ = false;
  bool notes_all_ = false;
  bool noted_ = false;  // one of these
  bool wants_exchange_ = false;

  std::vector<Block> blocks_;  // of the phase
  std::size_t block_ = 0;
  std::size_t measured_calls_ = 0;
  std::vector<Kept> kept_;        // this rank's, one for each call of the phase
  std::int64_t exchange_ns_ = 0;  // this rank's
  std::int64_t own_set_up_ns_ = std::numeric_limits<std::int64_t>::max();

  // Equal on all ranks.
  int round_ = 0;
  std::int64_t present_cost_ns_ = 0;  // of the candidate in use, at the last check
  std::int64_t usual_cost_ns_ = -1;   // at the first check after the last trial; negative: there was none
  bool usually_skewed_ = false;
  std::vector<MeasuredCall> seen_;
  std::int64_t pattern_ = 0;
  std::int64_t usual_pattern_ = 0;  // once it was known after the last trial
  int changed_checks_ = 0;          // in a row
  std::int64_t spent_before_trial_ns_ = 0;
  std::int64_t foreseen_ns_ = 0;    // when it began
  std::int64_t last_trial_ns_ = 0;  // what it cost
  std::int64_t calls_before_trial_ = 0;
  std::int64_t next_trial_ = 0;  // number of calls from which on one is due though nothing has changed
  std::int64_t patience_;
  std::int64_t trials_ = 0;
  std::int64_t changes_ = 0;
};

}  // namespace papaya::tuning
