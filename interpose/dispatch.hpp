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
extern "C" __attribute__((visibility("default"))) unsigned long papaya_flavour_replaced(const char* collective);

namespace papaya {

// What a wrapper says of its arguments.
struct Message {
  std::uint64_t bytes = 0;
  int root = -1;
};

// Counts and displacements of a v-form as the program passed them: int, or in the large form MPI_Count and MPI_Aint.
struct Lists {
  const void* counts = nullptr;
  const void* places = nullptr;
  bool large = false;

  bool is_there() const noexcept { return counts != nullptr && places != nullptr; }
  MPI_Count count(int i) const noexcept {
    return large ? static_cast<const MPI_Count*>(counts)[i] : static_cast<const int*>(counts)[i];
  }
  MPI_Aint place(int i) const noexcept {
    return large ? static_cast<const MPI_Aint*>(places)[i] : static_cast<const int*>(places)[i];
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
  std::uint64_t call;  // its number on the communicator
  std::uint64_t arrival_ticks;
  const void* site;
  const Recorder::Arrival* arrival;  // null: nothing is recorded
  NodeArrivals::Group* on_node;      // of the communicator
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
  Runtime& process = runtime();
  const Recorder::Arrival& arrival = *facts.arrival;
  const std::uint64_t call_site = process.call_sites.number_of(facts.site);
  outcome.event = process.recorder.begin(arrival, call_site);
  outcome.begun = true;
  if (arrival.form == Form::blocking)
    process.node_arrivals.publish(*facts.on_node, arrival.call, arrival.ticks, call_site, arrival.collective,
                                  arrival.bytes, arrival.root);
}

// MPI_Pack and MPI_Reduce_local count in int.
inline constexpr std::uint64_t largest_message = std::uint64_t{1} << 30;

// The messages that an algorithm is set up for when one of `bytes` comes.
std::size_t capacity_of(const Communicator& state, const Descriptor& algorithm, std::size_t bytes) noexcept;

// For a call unlike the last one of its collective: decides, sets up what is needed, and runs it. See replace() in
// repeat.hpp.
bool decide_and_replace(Communicator& state, const Arguments& arguments, const CallFacts& facts,
                        Outcome& outcome) noexcept;

// The same for MPI_Alltoallv, whose sizes no rank knows of the others.
bool replace_alltoallv(Communicator& state, const Arguments& arguments, const CallFacts& facts,
                       Outcome& outcome) noexcept;

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
  const bool is_recording = process.recording.load(std::memory_order_relaxed);
  if (!process.recorder.is_open() || !is_recording) [[unlikely]] {
    if (process.recorder.is_open()) process.recorder.leave_out();
    const CallFacts facts{call, arrival_ticks, site, nullptr, nullptr};
    const int code = replace_inside(replace, *state, facts, outcome) ? MPI_SUCCESS : native();
    if (code == MPI_SUCCESS && count()) process.node_arrivals.left(state->on_node, call);
    return code;
  }
  std::uint64_t& open_event = native_event;
  if (open_event != no_event) process.recorder.take_back(open_event);
  open_event = no_event;
  const Message message = describe(*state);
  const Recorder::Arrival arrival{arrival_ticks, state->id, call, message.bytes, message.root, collective, form};
  const CallFacts facts{call, arrival_ticks, site, &arrival, &state->on_node};
  int code = MPI_SUCCESS;
  if (!replace_inside(replace, *state, facts, outcome)) {
    begin_event(facts, outcome);
    open_event = outcome.event;
    code = native();
    open_event = no_event;
    if (code != MPI_SUCCESS) {
      process.recorder.take_back(outcome.event);
      if (form == Form::blocking && communicators::find(comm) == state)
        process.node_arrivals.take_back(state->on_node, call);
    }
  }
  const bool is_counted = code == MPI_SUCCESS && count();
  begin_event(facts, outcome);
  process.recorder.finish(outcome.event, arrival, clock::ticks(), outcome.algorithm,
                          static_cast<std::uint8_t>(outcome.reason));
  if (is_counted) process.node_arrivals.left(state->on_node, call);
  return code;
}

}  // namespace papaya
