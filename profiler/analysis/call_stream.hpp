// The calls of a run in the order of their last arrivals, made of the events of all ranks, which are read a little at a
// time: what is in memory at once are the calls that some rank has arrived at and another has not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "profiler/analysis/event_facts.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/read/clocks.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

class CallStream {
 public:
  // `is_in_call`: if the call is a blocking one, it will be handed over.
  using OnEvent = std::function<void(std::size_t file, const trace::Event& event, bool is_in_call)>;
  using OnCall = std::function<void(const GroupCall& call)>;

  CallStream(const Run& run, const Clocks& clocks, Groups& groups);

  // Reads the run through. `on_event` for each event, those of a rank in their order; `on_call` for each blocking call:
  // those whose arrivals are known in the order of their last arrivals, so that each rank's come in its order. Those of
  // communicators whose ranks cannot be told apart are left out. Brings what the groups' members say up to date.
  // `progress` gets, now and then, the events read and those there are.
  void read(const OnEvent& on_event, const OnCall& on_call, const Progress& progress = {});

  // Of the last time that it was read. By file:
  const std::vector<EventFacts>& facts() const { return facts_; }
  // Events on communicators that are not in the tables.
  std::uint64_t untabled_events() const { return untabled_events_; }

 private:
  const Run& run_;
  const Clocks& clocks_;
  Groups& groups_;
  std::vector<EventFacts> facts_;
  std::uint64_t untabled_events_ = 0;
};

}  // namespace papaya::report
