// The events of a run, each with what the arrivals of the others at its call say of it, read a little at a time: for
// whoever shows single calls. In memory are those from the first whose call is not yet known on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "profiler/read/clocks.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

// What is said of an event beside its own fields.
struct InCall {
  bool is_matched = false;  // the arrivals at its call are known
  double waiting_ns = 0;    // until the last of those whose data it needs had arrived
  std::int32_t awaited = -1;
  bool is_last = false;  // by more than the clocks tell
  double late_ns = 0;    // after the first
};

using OnEventInCall = std::function<void(std::size_t file, const trace::Event& event, const InCall& its)>;

// Reads the run through. The events of a rank come in the order they began, those of different ranks in between.
void read_events(const Run& run, const Clocks& clocks, const OnEventInCall& on_event);

}  // namespace papaya::report
