// A run of many events is read in parts of its time, several at once: who waited for whom at a call can be told only
// where all its ranks are known, so a part has the events of all ranks, and what its calls add up to is added up. Into
// how many parts follows from the run alone, so that the figures do not depend on how many are read at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "profiler/analysis/call_stream.hpp"
#include "profiler/analysis/event_facts.hpp"
#include "profiler/analysis/in_order.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/read/clocks.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

// In the order of time, of about equally many events, `events` or more. One, of all the run, where it is
// smaller, where events are not in the rings alone, or where ranks have not come to their end.
std::vector<RunPart> parts_of(const Run& run, const Clocks& clocks, std::size_t events);

// Calls that have their ranks in several parts.
class LeftCalls {
 public:
  // Of the next part in the order of time. Those that now have all ranks go to `on_call`, those of a rank in their
  // order. `groups`: of the run.
  void add(std::vector<LeftCall> left, Groups& groups, const CallStream::OnCall& on_call);
  // The others, which lack ranks. Once, after the last part.
  void close(Groups& groups, const CallStream::OnCall& on_call);

 private:
  std::map<std::pair<std::size_t, std::uint64_t>, LeftCall> open_;  // by group and call
};

// Reads a run, several of its parts at once.
class RunReader {
 public:
  // `progress` gets the events read, of all that are to be: each twice.
  RunReader(const Run& run, const Clocks& clocks, Groups& groups, std::vector<RunPart> parts, const Progress& progress);

  // Adds all events and blocking calls to `sums`, as CallStream gives them: add(file, event) and add(call). Those of a
  // part to what `make()` returns, which merge() then adds to it, in the order of time. Returns what is kept of each
  // file.
  template <class Sums, class Make>
  std::vector<EventFacts> read(Sums& sums, std::size_t threads, const Make& make);

  // Of the last reading: events on communicators that are not in the tables.
  std::uint64_t untabled_events() const { return untabled_events_; }

 private:
  template <class Sums>
  struct OfPart {
    OfPart(const Groups& of_run, Sums none) : groups(of_run), sums(std::move(none)) {}

    Groups groups;
    Sums sums;
    std::vector<EventFacts> facts;
    std::vector<LeftCall> left;
    std::uint64_t untabled_events = 0;
  };

  template <class Sums>
  static void read(CallStream& stream, Sums& sums, const Progress& progress) {
    stream.read([&](std::size_t file, const trace::Event& event, bool) { sums.add(file, event); },
                [&](const GroupCall& call) { sums.add(call); }, progress);
  }
  // Of one part, which is read by one thread.
  Progress progress_of_part();

  const Run& run_;
  const Clocks& clocks_;
  Groups& groups_;
  std::vector<RunPart> parts_;
  const Progress& progress_;
  std::mutex progress_mutex_;
  std::size_t events_;
  std::size_t readings_ = 0;
  std::size_t done_ = 0;
  std::uint64_t untabled_events_ = 0;
};

template <class Sums, class Make>
std::vector<EventFacts> RunReader::read(Sums& sums, std::size_t threads, const Make& make) {
  if (parts_.size() == 1) {
    CallStream stream(run_, clocks_, groups_);
    Progress own;
    if (progress_)
      own = [this, before = readings_++ * events_](std::size_t done, std::size_t) {
        progress_(before + done, 2 * events_);
      };
    read(stream, sums, own);
    untabled_events_ = stream.untabled_events();
    return stream.facts();
  }
  untabled_events_ = 0;
  threads = std::min(threads, parts_.size());
  for (RunPart& part : parts_) part.beside = threads;
  std::vector<EventFacts> facts(run_.files.size());
  LeftCalls left;
  const Groups unread = groups_;
  const auto add_left = [&](const GroupCall& call) { sums.add_left(call); };
  in_order(
      parts_.size(), threads,
      [&](std::size_t p) {
        auto part = std::make_unique<OfPart<Sums>>(unread, make());
        CallStream stream(run_, clocks_, part->groups, parts_[p]);
        read(stream, part->sums, progress_of_part());
        if (p + 1 < parts_.size()) part->sums.end_part(stream.facts());
        part->facts = stream.facts();
        part->left = stream.take_left();
        part->untabled_events = stream.untabled_events();
        return part;
      },
      [&](std::size_t, std::unique_ptr<OfPart<Sums>> part) {
        sums.merge(std::move(part->sums));
        groups_.merge(part->groups);
        for (std::size_t f = 0; f < facts.size(); ++f) facts[f].merge(part->facts[f]);
        left.add(std::move(part->left), groups_, add_left);
        untabled_events_ += part->untabled_events;
      });
  left.close(groups_, add_left);
  return facts;
}

}  // namespace papaya::report
