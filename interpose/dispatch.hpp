// The path of one collective call: recorded, replaced or handed to MPI.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "base/clock.hpp"
#include "interpose/communicator.hpp"
#include "interpose/reduction.hpp"
#include "interpose/runtime.hpp"

extern "C" __attribute__((visibility("default"))) int papaya_flavour_select(const char* collective,
                                                                            const char* selection);

namespace papaya {

// What a wrapper says of its arguments.
struct Message {
  std::uint64_t bytes = 0;
  int root = -1;
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
};

// What dispatch knows of a call.
struct CallFacts {
  std::uint64_t call;  // its number on the communicator
  std::uint64_t arrival_ticks;
  const void* site;
  const Recorder::Arrival* arrival;  // null: nothing is recorded
};

// What became of it, for the trace.
struct Outcome {
  std::uint8_t algorithm = 0;  // its number in the trace, 0: native
  Reason reason = Reason::no_algorithm;
  std::uint64_t event = 0;  // the recorder's number for the call, once `begun`
  bool begun = false;
};

// Begins the event, if it has not been.
inline void begin_event(const CallFacts& facts, Outcome& outcome) noexcept {
  if (facts.arrival == nullptr || outcome.begun) return;
  outcome.event = runtime().recorder.begin(*facts.arrival);
  outcome.begun = true;
}

// Runs the call through one of papaya's algorithms. True if it did; false with the reason if it is to go
// native, which every rank decides alike.
bool replace(Communicator& state, const Arguments& arguments, const CallFacts& facts,
             Outcome& outcome) noexcept;

// Papaya's own part of a call. Not the native one: what MPI calls back from there (error handlers, attribute callbacks) is
// the program's, and its collectives are calls like any other.
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
  int code = MPI_SUCCESS;
  const std::uint64_t call = state->calls++;
  if (!process.recorder.is_open()) {
    const CallFacts facts{call, arrival_ticks, site, nullptr};
    if (!replace_inside(replace, *state, facts, outcome)) code = native();
    return code;
  }
  const Message message = describe(*state);
  const Recorder::Arrival arrival{arrival_ticks,
                                  state->id,
                                  call,
                                  message.bytes,
                                  process.keep_call_sites ? reinterpret_cast<std::uint64_t>(site) : 0,
                                  message.root,
                                  collective,
                                  form};
  const CallFacts facts{call, arrival_ticks, site, &arrival};
  if (!replace_inside(replace, *state, facts, outcome)) {
    begin_event(facts, outcome);
    // From here on the state may be gone: an error handler may free the communicator, or never come back.
    code = native();
    if (code != MPI_SUCCESS) {
      // This rank's error alone: the others wait for the call it makes next, which takes this one's number.
      process.recorder.take_back(outcome.event);
      if (Communicator* const still = communicators::find(comm); still == state && state->calls == call + 1) --state->calls;
    }
  }
  begin_event(facts, outcome);
  process.recorder.finish(outcome.event, arrival, clock::ticks(), outcome.algorithm,
                          static_cast<std::uint8_t>(outcome.reason));
  return code;
}

}  // namespace papaya
