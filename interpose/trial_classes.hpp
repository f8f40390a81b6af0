// Which calls of a communicator belong to which trial: those of one collective, one class of sizes and, where that
// matters, one place in the program.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "interpose/call.hpp"
#include "tuning/site_period.hpp"
#include "tuning/trial.hpp"

namespace papaya::trials {

// The pattern of the last calls.
struct Arrivals {
  tuning::ArrivalClass pattern = tuning::ArrivalClass::unknown;
  int straggler = -1;  // persistent: in the communicator
  bool operator==(const Arrivals&) const = default;
};

struct Class;

// Calls of a class: all that have no part of their own, or those of one place.
struct One {
  One(Class& class_of_it, tuning::SitePeriod::Place place_of_it, std::uint64_t bytes_of_first,
      std::vector<const tuning::Rule*> rules, tuning::Trial begin) noexcept;
  ~One();
  One(const One&) = delete;
  One& operator=(const One&) = delete;

  // As far as all ranks know it.
  tuning::Learnt learnt() const noexcept { return {arrivals.pattern, place.named}; }
  // Who serves is for the trial to say: there is a choice. Not as long as it lacks candidates.
  bool has_choice() const noexcept { return candidates.size() > 1; }

  Class& of;
  tuning::SitePeriod::Place place;              // of those that are named the mark is 0; both 0: of no place
  std::uint64_t call_site = 0;                  // this rank's there; 0: not known
  std::uint64_t bytes;                          // of the first call
  std::vector<const tuning::Rule*> candidates;  // null, the first: MPI. Nothing else: the rules decide
  tuning::Trial trial;
  Arrivals arrivals;               // on which all ranks have agreed
  Arrivals latest;                 // what the last exchange made of them
  trace::TrialRow* row = nullptr;  // of the record, once there was a trial
  bool has_no_row = false;
};

struct Class {
  Collective collective;
  bool tries;                  // else its calls are only watched
  int size_class;              // of 2^(size_class-1) bytes, excluded, to 2^size_class
  tuning::SitePeriod sites{};  // where its calls come from
  std::vector<One*> parts{};   // the first: of no place
  // By a call's place in the period, where some places have a part of their own.
  std::array<One*, tuning::SitePeriod::longest> by_place{};
  bool is_split = false;
  bool alternates = false;  // between parts
  One* current = nullptr;   // that the next call belongs to
  std::int64_t others = 0;  // calls of the other parts

  One& whole() const noexcept { return *parts.front(); }
  std::int64_t calls() const noexcept { return others + current->trial.calls(); }
};

class OnCommunicator {
 public:
  std::vector<std::unique_ptr<One>> all;  // in the order of their first calls, which is that of all ranks
  std::vector<std::unique_ptr<Class>> classes;
};

// The trial that the call belongs to, begun if there is none; null where there is nothing to choose from. `decision`:
// by the table.
One* find(Communicator& state, const Arguments& arguments, const Decision& decision, const Job& job) noexcept;

// Its trial lacks those that work between nodes, and there is now what they need. Right after an exchange.
void admit_candidates(Communicator& state, One& one, const Job& job);

// The trial that calls of so many bytes belong to; null: there is none.
const One* find(const Communicator& state, Collective collective, std::uint64_t bytes) noexcept;

// Trials of the process that have not ended.
std::int64_t count() noexcept;

// Of the calls of a class.
std::uint64_t most_bytes_of(const Class& one) noexcept;

// Of a list of candidates; its size: it is none of them.
std::size_t find(const tuning::Rule* rule, std::span<const tuning::Rule* const> candidates) noexcept;

// What the rules choose for such calls.
tuning::Choice choice_under(const tuning::Learnt& learnt, const tuning::Selection& selection, const Communicator& state,
                            Collective collective, std::uint64_t bytes) noexcept;

// The part for calls of this place, made if there is none; the whole if there are too many already. `is_new`: it was.
One& part_of(Communicator& state, Class& of, const tuning::SitePeriod::Place& place, const Job& job, bool& is_new);

}  // namespace papaya::trials
