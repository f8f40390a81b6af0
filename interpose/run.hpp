// What every replaced call goes through, by the fast path or not: the check for what MPI reports itself, and running a
// prepared algorithm on buffers it can take as they are. Inlined into the wrappers.
#pragma once

#include "interpose/aliases.hpp"
#include "interpose/blocks.hpp"
#include "interpose/call.hpp"
#include "interpose/device_memory.hpp"
#include "interpose/implementation.hpp"

namespace papaya {

// Does this rank's `receive` mean anything to MPI?
inline bool receives(const Communicator& state, const Arguments& a) {
  if (a.collective == Collective::scatter) return a.receive != MPI_IN_PLACE;
  return !root_waits(a.collective) || state.rank == a.root;
}

// Is the buffer that is sent the one that is received into as well, where MPI would refuse that? No more than what it
// does refuse: a rank that went to MPI alone would wait for the others for ever. MPI_BOTTOM on both sides is not the
// same buffer, and with different types nothing is said.
[[gnu::always_inline]] inline bool is_aliased(const Communicator& state, const Arguments& a) noexcept {
  if (a.send == MPI_IN_PLACE || a.send == nullptr) return false;
  if (!is_mpich())
    return a.send == a.receive && ((a.collective == Collective::allreduce && a.count > 1) ||
                                   (a.collective == Collective::reduce && a.count > 0));
  if (!reduces(a.collective) && (a.send_type != a.type || a.send_count != own_elements(state, a))) return false;
  if (a.collective == Collective::allgatherv)
    return a.send ==
           static_cast<const std::byte*>(a.receive) + a.lists.displacement(state.rank) * element_bytes_of(a.type);
  const std::int64_t before_own = state.rank * static_cast<std::int64_t>(a.count) * element_bytes_of(a.type);
  if (a.collective == Collective::scatter) return a.receive == static_cast<const std::byte*>(a.send) + before_own;
  if (a.collective != Collective::allgather && a.collective != Collective::gather) return a.send == a.receive;
  return a.send == static_cast<const std::byte*>(a.receive) + before_own;
}

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
    case Collective::gather:
      if (!is_root) return a.send == MPI_IN_PLACE || (dense && a.send == nullptr);
      break;
    case Collective::scatter:
      if (!is_root) return a.receive == MPI_IN_PLACE || (dense && a.receive == nullptr);
      if (a.send == MPI_IN_PLACE) return true;
      if (a.receive == MPI_IN_PLACE) return dense && a.send == nullptr;
      break;
    case Collective::allgatherv:
      if (!a.lists.is_there()) return true;
      if (a.lists.count(state.rank) == 0) return a.receive == MPI_IN_PLACE || (dense && a.receive == nullptr);
      break;
    case Collective::reduce_scatter:
      // Where it gets nothing a rank may have no buffer.
      dense = dense && (a.send == nullptr || a.lists.count(state.rank) > 0);
      break;
    default:
      break;
  }
  if (a.receive == MPI_IN_PLACE || (dense && (a.receive == nullptr || a.send == nullptr))) return true;
  return is_aliased(state, a) && aliases::are_refused();
}

[[gnu::always_inline]] inline bool run(Communicator& state, Plan& plan, Collective collective, Operands& operands,
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
  plan.collective = collective;
  if (!plan.prepared->run(operands, state.site_of(facts.site))) {
    outcome.reason = is_rooted(collective) ? Reason::ahead : Reason::device_memory;
    return false;
  }
  if (plan.wire != nullptr) plan.wire->leave();
  ++state.served[index_of(collective)];
  outcome.algorithm = plan.trace_number;
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

// Buffers that an algorithm can take as they are: dense, on the host or declined.
[[gnu::always_inline]] inline bool run_in_place(Communicator& state, Plan& plan, const Reduction& reduction,
                                                std::size_t bytes, bool on_device, const Arguments& a,
                                                const CallFacts& facts, Outcome& outcome) noexcept {
  Operands operands{.send = a.send,
                    .receive = a.receive,
                    .count = static_cast<std::size_t>(a.count),
                    .bytes = bytes,
                    .root = a.root,
                    .reduction = &reduction,
                    .declines = on_device};
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
    case Collective::gather:
      if (!is_root) operands.receive = nullptr;
      [[fallthrough]];
    case Collective::allgather:
      if (a.send == MPI_IN_PLACE)
        operands.send = static_cast<std::byte*>(a.receive) + static_cast<std::size_t>(state.rank) * bytes;
      break;
    case Collective::scatter:
      if (!is_root) operands.send = nullptr;
      if (a.receive == MPI_IN_PLACE) operands.receive = nullptr;
      break;
    case Collective::allgatherv: {
      const std::size_t element = bytes / operands.count;
      describe_gathered(state, a, element, static_cast<MPI_Aint>(element), operands);
      if (a.send == MPI_IN_PLACE) operands.send = operands.receive_blocks[state.rank].at;
      break;
    }
    case Collective::reduce_scatter:
      describe_blocks(state, a, reduction.element_bytes, operands);
      [[fallthrough]];
    default:
      if (a.send == MPI_IN_PLACE) operands.send = a.receive;
  }
  return run(state, plan, a.collective, operands, facts, outcome);
}

}  // namespace papaya
