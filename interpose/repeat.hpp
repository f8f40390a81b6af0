// A call like the last one of its collective on its communicator, which a program in a loop makes again and again: what
// was decided then holds. Inlined into the wrappers, where the collective is a constant and the arguments stay in
// registers; and the part of it that every replaced call goes through.
#pragma once

#include <cstdlib>
#include <cstring>

#include "interpose/device_memory.hpp"
#include "interpose/dispatch.hpp"

namespace papaya {

inline bool reduces(Collective collective) {
  return collective == Collective::allreduce || collective == Collective::reduce;
}

// Ranks may leave before all have arrived, so that a rank that cannot take part cannot keep the others out.
inline bool is_rooted(Collective collective) {
  return collective == Collective::reduce || collective == Collective::bcast;
}

// Does this rank's `receive` mean anything to MPI?
inline bool receives(const Communicator& state, const Arguments& a) {
  return a.collective != Collective::reduce || state.rank == a.root;
}

#if defined(MPICH)
inline bool refuses_aliases() noexcept {
  static const bool refuses = [] {
    const char* const check = std::getenv("MPIR_CVAR_COLL_ALIAS_CHECK");
    return check == nullptr || (std::strcmp(check, "0") != 0 && std::strcmp(check, "no") != 0 &&
                                std::strcmp(check, "false") != 0 && std::strcmp(check, "off") != 0);
  }();
  return refuses;
}
#endif

// Errors that MPI would find are MPI's to report, under the name of the function the user called. `dense`:
// the null pointer is no buffer, since no type with absolute addresses is in play.
[[gnu::always_inline]] inline bool is_erroneous(const Communicator& state, const Arguments& a, bool dense) noexcept {
  const bool is_root = state.rank == a.root;
  switch (a.collective) {
    case Collective::barrier:
      return false;
    case Collective::bcast:
      return a.receive == MPI_IN_PLACE || (dense && a.receive == nullptr);
    case Collective::reduce:
      if (!is_root) return a.send == MPI_IN_PLACE || (dense && a.send == nullptr);
      break;
    default:
      break;
  }
  if (a.receive == MPI_IN_PLACE || (dense && (a.receive == nullptr || a.send == nullptr))) return true;
#if defined(MPICH)
  // Aliased buffers, which Open MPI takes. No more than what MPICH itself refuses: a rank that went to MPI alone would
  // wait for the others for ever. MPI_BOTTOM on both sides is not the same buffer, and with different types nothing is
  // said.
  if (a.send == MPI_IN_PLACE || a.send == nullptr || !refuses_aliases()) return false;
  if (!reduces(a.collective) && (a.send_type != a.type || a.send_count != a.count)) return false;
  if (a.collective != Collective::allgather) return a.send == a.receive;
  const std::int64_t block = static_cast<std::int64_t>(a.count) * element_bytes_of(a.type);
  return a.send == static_cast<const std::byte*>(a.receive) + state.rank * block;
#endif
  return false;
}

[[gnu::always_inline]] inline bool run(Communicator& state, Setup& setup, Collective collective, Operands& operands,
                                       const CallFacts& facts, Outcome& outcome) noexcept {
  // The event is begun once the others can go on: recording costs them nothing.
  struct Begin {
    const CallFacts& facts;
    Outcome& outcome;
  } begin{facts, outcome};
  if (facts.arrival != nullptr) {
    operands.deposited = [](void* begun) {
      const Begin& event = *static_cast<Begin*>(begun);
      begin_event(event.facts, event.outcome);
    };
    operands.context = &begin;
  }
  setup.collective = collective;
  if (!setup.prepared->run(operands, state.site_of(facts.site))) {
    outcome.reason = is_rooted(collective) ? Reason::ahead : Reason::device_memory;
    return false;
  }
  if (setup.wire != nullptr) setup.wire->leave();
  ++state.served[index_of(collective)];
  outcome.algorithm = setup.trace_number;
  outcome.reason = Reason::none;
  return true;
}

// Whether a buffer is on a device only its own rank knows.
[[gnu::always_inline]] inline bool is_on_device(const Communicator& state, const Arguments& a,
                                                const CallFacts& facts) noexcept {
  if (a.collective == Collective::barrier) return false;
  return (receives(state, a) && device_memory::holds(a.receive, facts.arrival_ticks)) ||
         (a.send != nullptr && a.send != MPI_IN_PLACE && device_memory::holds(a.send, facts.arrival_ticks));
}

// Buffers that an algorithm can take as they are: dense, on the host or vetoed.
[[gnu::always_inline]] inline bool run_in_place(Communicator& state, Setup& setup, const Reduction& reduction,
                                                std::size_t bytes, bool on_device, const Arguments& a,
                                                const CallFacts& facts, Outcome& outcome) noexcept {
  Operands operands{.send = a.send,
                    .receive = a.receive,
                    .count = static_cast<std::size_t>(a.count),
                    .bytes = bytes,
                    .root = a.root,
                    .reduction = &reduction,
                    .veto = on_device};
  const bool is_root = state.rank == a.root;
  switch (a.collective) {
    case Collective::bcast:
      operands.send = is_root ? a.receive : nullptr;
      operands.receive = is_root ? nullptr : a.receive;
      break;
    case Collective::reduce:
      if (a.send == MPI_IN_PLACE) operands.send = a.receive;
      if (!is_root) operands.receive = nullptr;
      break;
    case Collective::allgather:
      if (a.send == MPI_IN_PLACE)
        operands.send = static_cast<std::byte*>(a.receive) + static_cast<std::size_t>(state.rank) * bytes;
      break;
    default:
      if (a.send == MPI_IN_PLACE) operands.send = a.receive;
  }
  return run(state, setup, a.collective, operands, facts, outcome);
}

// Runs the call through one of papaya's algorithms. True if it did; false with the reason if it is to go native, which
// every rank decides alike.
[[gnu::always_inline]] inline bool replace(Communicator& state, const Arguments& a, const CallFacts& facts,
                                           Outcome& outcome) noexcept {
  const LastChoice& last = state.last[index_of(a.collective)];
  if (last.setup != nullptr && last.type == a.type && last.op == a.op && last.count == a.count &&
      (reduces(a.collective) || a.collective <= Collective::bcast || a.send == MPI_IN_PLACE ||
       (a.send_type == a.type && a.send_count == a.count)) &&
      (!is_rooted(a.collective) || static_cast<unsigned>(a.root) < static_cast<unsigned>(state.size))) {
    if (is_erroneous(state, a, true)) {
      outcome.reason = Reason::arguments;
      return false;
    }
    const bool on_device = is_on_device(state, a, facts);
    if (!on_device || !last.setup->through_host)
      return run_in_place(state, *last.setup, last.reduction, last.bytes, on_device, a, facts, outcome);
  }
  return decide_and_replace(state, a, facts, outcome);
}

}  // namespace papaya
