// The calls of a run in the order of their last arrivals, made of the events of all ranks, which are read a little at a
// time: what is in memory at once are the calls that some rank has arrived at and another has not. Or those of one part
// of a run (run_parts.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "profiler/analysis/archive.hpp"
#include "profiler/analysis/event_facts.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/read/clocks.hpp"
#include "profiler/read/event_reader.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

// Events of a run that one reading takes.
struct RunPart {
  std::vector<EventRange> ranges;  // by file
  bool is_first = true;            // nothing is before it
  std::size_t beside = 1;          // so many parts are read at once, and share the memory
};

// A call that has ranks in a part of a run and lacks others there.
struct LeftCall {
  std::size_t group = 0;
  std::uint64_t call = 0;
  bool is_computing_known = true;
  std::vector<Sighting> sightings;  // in no order

  void pack(Archive& archive) { archive(group, call, is_computing_known, sightings); }
};

// Where it is not known of one of the ranks.
void forget_computing(GroupCall& call, std::span<Sighting> sightings);

class CallStream {
 public:
  // `is_in_call`: if the call is a blocking one, it will be handed over.
  using OnEvent = std::function<void(std::size_t file, const trace::Event& event, bool is_in_call)>;
  using OnCall = std::function<void(const GroupCall& call)>;

  CallStream(const Run& run, const Clocks& clocks, Groups& groups) : CallStream(run, clocks, groups, {}, true) {}
  // Of a part, which has `groups` of its own. Calls that lack a rank there which may have made them in another part are
  // left; what a rank did before its first call of the part on a communicator counts from a few events before the part.
  CallStream(const Run& run, const Clocks& clocks, Groups& groups, RunPart part)
      : CallStream(run, clocks, groups, std::move(part), false) {}

  // Reads the run through. `on_event` for each event, those of a rank in their order; `on_call` for each blocking call:
  // those whose arrivals are known in the order of their last arrivals, so that each rank's come in its order. Those of
  // communicators whose ranks cannot be told apart are left out. Brings what the groups' members say up to date.
  // `progress` gets, now and then, the events read and those there are; of a part, 0 for those there are.
  void read(const OnEvent& on_event, const OnCall& on_call, const Progress& progress = {});

  // Of the last time that it was read. By file:
  const std::vector<EventFacts>& facts() const { return facts_; }
  // Events on communicators that are not in the tables.
  std::uint64_t untabled_events() const { return untabled_events_; }
  // Of a part.
  std::vector<LeftCall> take_left() { return std::move(left_); }

 private:
  CallStream(const Run& run, const Clocks& clocks, Groups& groups, RunPart part, bool is_whole);

  const Run& run_;
  const Clocks& clocks_;
  Groups& groups_;
  RunPart part_;
  bool is_whole_;
  std::vector<LeftCall> left_;
  std::vector<EventFacts> facts_;
  std::uint64_t untabled_events_ = 0;
};

}  // namespace papaya::report
