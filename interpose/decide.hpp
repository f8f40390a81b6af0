// Which calls go to an algorithm and which to MPI, and when a plan is set up: one place for blocking and nonblocking
// calls. Everything here is a function of facts that MPI makes equal on all ranks of the communicator, so that all
// ranks decide alike without a message. Nothing in here may come from a rank's own memory, addresses or clock. It knows
// no MPI, and is tested without (tests/unit/decide.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/collective.hpp"
#include "base/reason.hpp"
#include "tuning/selection.hpp"

namespace papaya {

constexpr bool reduces(Collective collective) noexcept {
  return collective == Collective::allreduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter || collective == Collective::reduce_scatter_block;
}

// By the selection for which collective it goes.
constexpr Collective selected_with(Collective collective) noexcept {
  return collective == Collective::alltoallv    ? Collective::alltoall
         : collective == Collective::allgatherv ? Collective::allgather
                                                : collective;
}

// Each rank gets its part of what is reduced.
constexpr bool scatters_result(Collective collective) noexcept {
  return collective == Collective::reduce_scatter || collective == Collective::reduce_scatter_block;
}

// Ranks may leave before all have arrived: none may wait for another, in set-up neither, and a rank that cannot take
// part cannot keep the others out.
constexpr bool is_rooted(Collective collective) noexcept {
  return collective == Collective::reduce || collective == Collective::bcast || collective == Collective::gather ||
         collective == Collective::scatter;
}
// Of these, where the root waits for the others; else the others wait for the root.
constexpr bool root_waits(Collective collective) noexcept {
  return collective == Collective::reduce || collective == Collective::gather;
}

// No rank leaves such a call, of some data, before all have come to it. (Of a reduce_scatter some may get none.)
constexpr bool is_meeting(Collective collective) noexcept {
  return collective == Collective::allreduce || collective == Collective::allgather ||
         collective == Collective::alltoall || collective == Collective::barrier ||
         collective == Collective::reduce_scatter_block;
}

// MPI_Pack and MPI_Reduce_local count in int.
inline constexpr std::uint64_t largest_message = std::uint64_t{1} << 30;

// A communicator that calls rarely should cost nothing: with a choice of papaya's own the first calls go to MPI.
inline constexpr std::uint64_t calls_before_setup = 8;

struct CommunicatorFacts {
  tuning::Facts facts{};       // predefined and may_reorder are the call's, and not looked at
  bool arrival_order = false;  // PAPAYA_ORDER=arrival
  bool inter = false;
  bool outside = false;                          // has members that MPI_COMM_WORLD does not
  bool has_copy = false;                         // papaya's own, for nonblocking calls
  bool has_due_plans = false;                    // that a call which no rank leaves early has to set up
  bool has_verdicts = false;                     // that such a call has to agree on (verdicts.hpp)
  std::span<const Descriptor* const> dropped{};  // algorithms that serve it no longer
};

inline bool is_dropped(const CommunicatorFacts& communicator, const Descriptor& algorithm) noexcept {
  return std::find(communicator.dropped.begin(), communicator.dropped.end(), &algorithm) != communicator.dropped.end();
}

struct CallShape {
  Collective collective{};
  Form form = Form::blocking;
  bool is_named = true;    // nonblocking calls: the user has named an algorithm
  std::int64_t count = 0;  // not of an alltoallv; of an allgatherv and a reduce_scatter, of all blocks
  int root = -1;
};

// What the program's datatype and operation mean.
struct Signature {
  enum class Operation : std::uint8_t { none, unsuitable, user, predefined };
  std::int64_t element_bytes = 0;  // negative: MPI would not take the type
  Operation operation = Operation::none;
  bool commutative = false;
  bool exact = true;  // the same bits in whatever order operands are combined
};

struct Decision {
  tuning::Choice choice;  // a rule, or the reason why there is none
  std::uint64_t bytes = 0;
  bool sets_up_due_plans = false;   // in this call, before it goes where it goes
  bool agrees_on_verdicts = false;  // the same, and before that: it is decided again afterwards
  bool may_be_tried = false;        // whoever serves it: the choice is papaya's own
  bool is_exact = true;             // no bit of the result depends on who serves it
};

// The reasons for which datatype and operation need not be looked at; Reason::none if there is none. Inlined: a call
// that is only recorded costs little more than this.
inline Reason excluded(const CommunicatorFacts& communicator, const CallShape& call) noexcept {
  if (call.form == Form::nonblocking && !call.is_named) return Reason::no_algorithm;
  if (communicator.inter) return Reason::intercommunicator;
  if (communicator.outside) return Reason::outside;
  if (communicator.facts.ranks == 1) return Reason::one_rank;
  if (call.form == Form::nonblocking && !communicator.has_copy) return Reason::no_copy;
  if (call.collective == Collective::alltoallv || call.collective == Collective::barrier) return Reason::none;
  if (call.count < 0) return Reason::arguments;
  if (is_rooted(call.collective) && (call.root < 0 || call.root >= communicator.facts.ranks)) return Reason::arguments;
  return call.count == 0 ? Reason::no_data : Reason::none;
}

Decision decide(const tuning::Selection& selection, const CommunicatorFacts& communicator, const CallShape& call,
                const Signature& signature) noexcept;

// What a call does for which a rule has been chosen.
struct PlanFacts {
  bool is_ready = false;           // it can run
  Reason failure = Reason::none;   // it never will, and why
  std::uint64_t calls_before = 0;  // for which it has been chosen since it was first
};
enum class Step : std::uint8_t {
  run,
  go_native,
  join,      // one step of a set-up in which no rank waits for another (async_setup.hpp)
  postpone,  // to the next call that no rank leaves early: whoever leaves this one may be what the others wait for
  set_up,    // with all ranks, now
};
struct Next {
  Step step;
  Reason reason;  // why this call is native, unless the step makes it run
};
Next next_step(const tuning::Choice& choice, Form form, int nodes, const PlanFacts& plan) noexcept;

}  // namespace papaya
