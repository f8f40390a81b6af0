// The path of one collective call: recorded, replaced or handed to MPI.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "base/clock.hpp"
#include "interpose/call.hpp"
#include "interpose/communicator.hpp"
#include "interpose/runtime.hpp"
#include "interpose/trials.hpp"

namespace papaya {

// What a wrapper says of its arguments.
struct Message {
  std::uint64_t bytes = 0;
  int root = -1;
};

// What replaces a call that is always MPI's.
inline constexpr auto never = [](Communicator&, const CallFacts&, Outcome&) noexcept { return false; };

// The event of this thread's native call that has not returned yet. If another call begins meanwhile, that one has
// failed: it is made by its error handler, or the handler has left it for good.
inline constexpr std::uint64_t no_event = ~std::uint64_t{0};
inline thread_local constinit std::uint64_t native_event = no_event;

// Papaya's own part of a call. Not the native one: what MPI calls back from there (error handlers, attribute callbacks)
// is the program's, and its collectives are calls like any other.
template <class Replace>
inline bool replace_inside(Replace&& replace, Communicator& state, const CallFacts& facts, Outcome& outcome) noexcept {
  const Entry entry;
  return replace(state, facts, outcome);
}

// `describe(state)` returns the Message; `replace(state, facts, outcome)` may run the call; `native()` calls
// PMPI. Everything is inlined into the wrapper, so that a call that is only recorded costs two clock reads
// and a cache line written.
template <class Describe, class Replace, class Native>
inline int collective(Collective collective, Form form, MPI_Comm comm, const void* site, Describe&& describe,
                      Replace&& replace, Native&& native) {
  Runtime& process = runtime();
  const std::uint64_t arrival_ticks = clock::ticks();
  if (!process.active.load(std::memory_order_acquire)) return native();
  Communicator* state = nullptr;
  {
    const Entry entry;
    if (!entry.is_outermost() || !communicators::is_plausible(comm)) return native();
    state = communicators::find(comm);
    if (state == nullptr) state = communicators::find_or_make(comm);
  }
  if (state == nullptr) return native();
  Outcome outcome;
  // The number is used up by a call that succeeds. One that returns an error, or never returns because an error handler
  // jumps out of it, has none: it is this rank's alone, and the others wait for the call it makes next.
  const std::uint64_t call = state->calls;
  const auto count = [&] {
    // An error handler or an attribute callback may have freed the communicator.
    if (communicators::find(comm) != state) return false;
    state->calls = call + 1;
    return true;
  };
  const bool is_recording = process.records.recording.load(std::memory_order_relaxed);
  if (!process.records.recorder.is_open() || !is_recording) [[unlikely]] {
    if (process.records.recorder.is_open()) process.records.recorder.leave_out();
    const CallFacts facts{process.job, process.records, call, arrival_ticks, site, nullptr, nullptr};
    const int code = replace_inside(replace, *state, facts, outcome) ? MPI_SUCCESS : native();
    if (code == MPI_SUCCESS && count()) {
      if (outcome.trial != nullptr) trials::leave(*state, outcome, process.job, arrival_ticks, clock::ticks());
      process.records.node_arrivals.left(state->on_node, call);
    }
    return code;
  }
  std::uint64_t& open_event = native_event;
  if (open_event != no_event) process.records.recorder.take_back(open_event);
  open_event = no_event;
  const Message message = describe(*state);
  const Recorder::Arrival arrival{arrival_ticks, state->id, call, message.bytes, message.root, collective, form};
  const CallFacts facts{process.job, process.records, call, arrival_ticks, site, &arrival, &state->on_node};
  int code = MPI_SUCCESS;
  if (!replace_inside(replace, *state, facts, outcome)) {
    begin_event(facts, outcome);
    open_event = outcome.event;
    code = native();
    open_event = no_event;
    if (code != MPI_SUCCESS) {
      process.records.recorder.take_back(outcome.event);
      if (form == Form::blocking && communicators::find(comm) == state)
        process.records.node_arrivals.take_back(state->on_node, call);
    }
  }
  // No event: nothing that is concluded from arrivals holds for it.
  if (outcome.is_approximate) [[unlikely]] {
    if (count()) process.records.node_arrivals.left(state->on_node, call);
    return code;
  }
  const bool is_counted = code == MPI_SUCCESS && count();
  begin_event(facts, outcome);
  const std::uint64_t exit_ticks = clock::ticks();
  MpiTimes::leave(exit_ticks);
  process.records.recorder.finish(outcome.event, arrival, exit_ticks, outcome.algorithm,
                                  static_cast<std::uint8_t>(outcome.reason));
  if (is_counted) {
    if (outcome.trial != nullptr) trials::leave(*state, outcome, process.job, arrival_ticks, exit_ticks);
    process.records.node_arrivals.left(state->on_node, call);
  }
  return code;
}

}  // namespace papaya
