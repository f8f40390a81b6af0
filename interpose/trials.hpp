// Online selection (tuning/trial.hpp) for the calls of one communicator: where the choice is papaya's own and
// PAPAYA_ADAPT allows it, MPI and the algorithms that could serve take turns, and the quickest stays. What is measured
// tells the pattern of arrivals, too, for rules of the tuning file that go by it: where nothing is tried, it is
// measured for them alone.
#pragma once

#include <cstdint>

#include "interpose/trial_classes.hpp"

namespace papaya::trials {

// Rules of the tuning file are for what all ranks know of these calls.
inline bool follows_rules(const Communicator& state, const One& one, const Job& job) noexcept {
  const tuning::Learnt learnt = one.learnt();
  if (learnt == tuning::Learnt{}) return false;
  return learnt.sites != 0 ||
         selection_for(job, state, one.of.collective, Form::blocking).goes_by_arrivals(one.of.collective);
}

// What serves the call. An algorithm that the communicator has dropped since cannot.
tuning::Choice present_choice(Communicator& state, One& one, const tuning::Choice& by_table,
                              Recorder& recorder) noexcept;

// The candidate whose turn it was could not serve, for `reason`. All ranks call this in the same call.
void note_failure(const Communicator& state, One& one, Reason reason, Recorder& recorder) noexcept;

// In a call that no rank leaves early: all trials of the communicator that wait for it exchange what was measured.
void exchange(Communicator& state, const CallFacts& facts, Outcome& outcome) noexcept;

namespace detail {
void leave(Communicator& state, const Outcome& outcome, const Job& job, std::uint64_t arrival_ticks,
           std::uint64_t exit_ticks) noexcept;
void move_on(Communicator& state, One& one) noexcept;

inline void count(Communicator& state, One& one) noexcept {
  const std::uint64_t generation = one.trial.generation();
  one.trial.count_call();
  if (one.trial.generation() != generation) [[unlikely]]
    move_on(state, one);
}
}  // namespace detail

// The call, which counts for a trial, has ended well.
inline void leave(Communicator& state, const Outcome& outcome, const Job& job, std::uint64_t arrival_ticks,
                  std::uint64_t exit_ticks) noexcept {
  if (outcome.trial->trial.is_noted()) [[unlikely]]
    detail::leave(state, outcome, job, arrival_ticks, exit_ticks);
  else
    detail::count(state, *outcome.trial);
}

}  // namespace papaya::trials
