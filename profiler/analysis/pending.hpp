// Calls that some ranks were inside when the record ended, and where the others were.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/event_facts.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/read/clocks.hpp"

namespace papaya::report {

class Archive;

// A pending call whose ranks that have not arrived may still be somewhere.
struct Unfinished {
  PendingCall call;
  std::vector<std::int32_t> absent;  // ranks of the job, ascending

  void pack(Archive& archive);
};

// `call` has ranks inside.
Unfinished unfinished_call(const Run& run, const Clocks& clocks, const GroupCall& call);

// Once all events are known: `facts` by file. `last_sign_ns`: until when there are signs of the job, on node 0's clock.
PendingCall pending_call(Unfinished unfinished, const Run& run, const Clocks& clocks, const Groups& groups,
                         std::span<const EventFacts> facts, double last_sign_ns);

}  // namespace papaya::report
