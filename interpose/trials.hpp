// Online selection (tuning/trial.hpp) for the calls of one communicator: where the choice is papaya's own and
// PAPAYA_ADAPT allows it, MPI and the algorithms that could serve take turns, and the quickest stays. What is measured
// tells the pattern of arrivals, too, for rules of the tuning file that go by it: where nothing is tried, it is
// measured for them alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "interpose/call.hpp"
#include "tuning/trial.hpp"

namespace papaya::trials {

// The pattern of the last calls.
struct Arrivals {
  tuning::ArrivalClass pattern = tuning::ArrivalClass::unknown;
  int straggler = -1;  // persistent: in the communicator
  bool operator==(const Arrivals&) const = default;
};

// Calls of one collective and one class of sizes.
struct One {
  One(Collective of, std::uint64_t bytes_of_first, bool is_tried, std::vector<const tuning::Rule*> rules,
      const tuning::Trial::Terms& terms) noexcept;
  ~One();
  One(const One&) = delete;
  One& operator=(const One&) = delete;

  Collective collective;
  int size_class;                               // of 2^(size_class-1) bytes, excluded, to 2^size_class
  std::uint64_t bytes;                          // of the first call
  bool tries;                                   // else it only finds out how the ranks arrive
  std::vector<const tuning::Rule*> candidates;  // null, the first: MPI. Nothing else: the rules decide
  tuning::Trial trial;
  Arrivals arrivals;               // on which all ranks have agreed
  Arrivals latest;                 // what the last exchange made of them
  trace::TrialRow* row = nullptr;  // of the record, once there was a trial
  bool has_no_row = false;
};

class OnCommunicator {
 public:
  std::vector<std::unique_ptr<One>> all;  // in the order of their first calls, which is that of all ranks
};

// The trial that the call belongs to, begun if there is none; null where there is nothing to choose from. `decision`:
// by the table.
One* find(Communicator& state, const Arguments& arguments, const Decision& decision, const Job& job) noexcept;

// The trial that calls of so many bytes belong to; null: there is none.
const One* find(const Communicator& state, Collective collective, std::uint64_t bytes) noexcept;

// What serves the call. An algorithm that the communicator has dropped since cannot.
tuning::Choice present_choice(Communicator& state, One& one, const tuning::Choice& by_table,
                              Recorder& recorder) noexcept;

// The candidate whose turn it was could not serve, for `reason`. All ranks call this in the same call.
void note_failure(const Communicator& state, One& one, Reason reason, Recorder& recorder) noexcept;

// In a call that no rank leaves early: all trials of the communicator that wait for it exchange what was measured.
void exchange(Communicator& state, const CallFacts& facts, Outcome& outcome) noexcept;

namespace detail {
void keep(One& one, const Outcome& outcome, const Communicator& state, const Job& job, std::uint64_t arrival_ticks,
          std::uint64_t exit_ticks) noexcept;
void move_on(Communicator& state, One& one) noexcept;
}  // namespace detail

// The call, which counts for a trial, has ended well.
inline void leave(Communicator& state, const Outcome& outcome, const Job& job, std::uint64_t arrival_ticks,
                  std::uint64_t exit_ticks) noexcept {
  One& one = *outcome.trial;
  if (one.trial.slot() >= 0) [[unlikely]]
    detail::keep(one, outcome, state, job, arrival_ticks, exit_ticks);
  const std::uint64_t generation = one.trial.generation();
  one.trial.count_call();
  if (one.trial.generation() != generation) [[unlikely]]
    detail::move_on(state, one);
}

}  // namespace papaya::trials
