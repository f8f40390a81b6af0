// One call of a collective on its way down: its arguments in one shape, what was noted when it came, what has become of
// it; and the decision about it, whose facts are taken from the arguments here, for blocking and nonblocking calls.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "interpose/communicator.hpp"
#include "interpose/decide.hpp"
#include "interpose/reduction.hpp"

namespace papaya {

// Counts and displacements of a v-form as the program passed them: int, or in the large form MPI_Count and MPI_Aint.
struct Lists {
  const void* counts = nullptr;
  const void* displacements = nullptr;
  bool large = false;

  bool is_there() const noexcept { return counts != nullptr && displacements != nullptr; }
  MPI_Count count(int i) const noexcept {
    return large ? static_cast<const MPI_Count*>(counts)[i] : static_cast<const int*>(counts)[i];
  }
  MPI_Aint displacement(int i) const noexcept {
    return large ? static_cast<const MPI_Aint*>(displacements)[i] : static_cast<const int*>(displacements)[i];
  }
};

// The arguments of a collective that can be replaced, in one shape. What a collective lacks is empty; what
// MPI calls insignificant is passed on and not looked at.
struct Arguments {
  Collective collective;
  const void* send = nullptr;
  MPI_Count send_count = 0;
  MPI_Datatype send_type = MPI_DATATYPE_NULL;
  void* receive = nullptr;  // MPI_Bcast's buffer too
  MPI_Count count = 0;      // of `receive`, or the reduction's
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  int root = -1;
  Lists send_lists{};  // of a v-form, in place of the counts
  Lists lists{};
};

// What dispatch knows of a call.
struct CallFacts {
  const Job& job;
  Records& records;
  std::uint64_t call;  // its number on the communicator
  std::uint64_t arrival_ticks;
  const void* site;
  const Recorder::Arrival* arrival;  // null: nothing is recorded
  NodeArrivals::Group* on_node;      // of the communicator
};

// What became of it, for the trace.
struct Outcome {
  std::uint32_t algorithm = 0;  // its number in the trace, 0: native
  Reason reason = Reason::no_algorithm;
  std::uint64_t event = 0;  // the recorder's number for the call, once `begun`
  bool begun = false;
  bool is_approximate = false;   // PAPAYA_APPROX: recorded with the weakly consistent collectives
  std::uint64_t call_site = 0;   // its number in the record, once `begun`; 0: not known
  trials::One* trial = nullptr;  // that the call counts for,
  int root = -1;                 // and the call's root then
};

// Begins the event, if it has not been.
inline void begin_event(const CallFacts& facts, Outcome& outcome) noexcept {
  if (facts.arrival == nullptr || outcome.begun) return;
  Records& records = facts.records;
  const Recorder::Arrival& arrival = *facts.arrival;
  const std::uint64_t call_site = records.call_sites.number_of(facts.site);
  outcome.event = records.recorder.begin(arrival, call_site);
  outcome.call_site = call_site;
  outcome.begun = true;
  records.mpi_times.arrive(outcome.event, arrival.ticks);
  if (arrival.form == Form::blocking)
    records.node_arrivals.publish(*facts.on_node, arrival.call, arrival.ticks, call_site, arrival.collective,
                                  arrival.bytes, arrival.root);
}

// What an algorithm gets to know of datatype and operation. `reduction` refers to `context`.
struct Described {
  Reduction reduction;
  ReductionContext context;
  bool dense = true;  // elements, or a pair's parts, lie in memory as an algorithm takes them
};

inline CommunicatorFacts facts_of(const Communicator& state, const tuning::Learnt& learnt = {}) noexcept {
  CommunicatorFacts facts{.facts = state.facts,
                          .arrival_order = state.arrival_order,
                          .inter = state.inter,
                          .outside = state.outside,
                          .has_copy = state.queue != nullptr,
                          .has_due_plans = state.has_due_plans || state.has_due_exchange,
                          .has_verdicts = !state.verdicts.empty(),
                          .dropped = state.dropped};
  facts.facts.arrivals = learnt.arrivals;
  facts.facts.sites = learnt.sites;
  return facts;
}
inline CallShape shape_of(const Arguments& a, Form form, bool is_named) noexcept {
  return {.collective = a.collective, .form = form, .is_named = is_named, .count = a.count, .root = a.root};
}

// decide() for this call. `is_named` as in CallShape. `described` is left as it is where datatype and operation are not
// looked at. `learnt`: as all ranks know it.
Decision decide(const Job& job, const Communicator& state, const Arguments& arguments, Form form, bool is_named,
                Described& described, const tuning::Learnt& learnt = {}) noexcept;
// The same for a call that nobody makes.
Decision decide(const Job& job, const Communicator& state, const CallShape& call, const Signature& signature,
                const tuning::Learnt& learnt = {}) noexcept;

// By what such a call on the communicator goes: the job's selection, or hints.
const tuning::Selection& selection_for(const Job& job, const Communicator& state, Collective collective,
                                       Form form) noexcept;

}  // namespace papaya
