// A run of many events is read in parts of its time, several at once: who waited for whom at a call can be told only
// where all its ranks are known, so a part has the events of all ranks, and what its calls add up to is added up. Into
// how many parts follows from the run alone, so that the figures do not depend on how many are read at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "profiler/analysis/call_stream.hpp"
#include "profiler/analysis/event_facts.hpp"
#include "profiler/analysis/in_order.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/analysis/readers.hpp"
#include "profiler/analysis/shared_reading.hpp"
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
  // Those that lack ranks.
  std::vector<LeftCall> take();
  void pack(Archive& archive);

 private:
  std::map<std::pair<std::size_t, std::uint64_t>, LeftCall> open_;  // by group and call
};

// Thrown where a process cannot go on reading a run with others (shared_reading.hpp): number 0 reads it alone.
class NotShared : public std::runtime_error {
 public:
  NotShared() : std::runtime_error("the run is read by one process alone") {}
};

// Reads a run, several of its parts at once.
class RunReader {
 public:
  // `progress` gets the events read, of all that are to be: each twice.
  RunReader(const Run& run, const Clocks& clocks, Groups& groups, std::vector<RunPart> parts, const Progress& progress);

  // From now on with others of `readers`, of which this is number 0, if there are parts for more than `threads` of its
  // own.
  void share(Readers& readers, std::size_t threads);
  // From now on with the others that number 0 has asked, `count` in all; NotShared if it reads alone.
  void join(Readers& readers, std::size_t count);

  // Adds all events and blocking calls to `sums`, as CallStream gives them: add(file, event) and add(call). Those of a
  // part to what `make(so_far)` returns, which merge() then adds to the sums so far, in the order of time; they may be
  // looked at if one thread reads. Returns what is kept of each file.
  template <class Sums, class Make>
  std::vector<EventFacts> read(Sums& sums, std::size_t threads, const Make& make);

  // Of the last reading: events on communicators that are not in the tables.
  std::uint64_t untabled_events() const { return untabled_events_; }

 private:
  // Of parts that follow each other.
  template <class Sums>
  struct OfParts {
    OfParts(const Groups& of_run, Sums none) : groups(of_run), sums(std::move(none)) {}

    void add_left(std::vector<LeftCall>&& calls) {
      left.add(std::move(calls), groups, [this](const GroupCall& call) { sums.add_left(call); });
    }
    // The next ones.
    void merge(OfParts&& next) {
      sums.merge(std::move(next.sums));
      groups.merge(next.groups);
      facts.resize(next.facts.size());
      for (std::size_t f = 0; f < facts.size(); ++f) facts[f].merge(next.facts[f]);
      untabled_events += next.untabled_events;
      add_left(next.left.take());
    }
    void pack(Archive& archive) { archive(groups, sums, facts, left, untabled_events); }

    Groups groups;
    Sums sums;
    std::vector<EventFacts> facts;
    LeftCalls left;
    std::uint64_t untabled_events = 0;
  };

  template <class Sums>
  static void read(CallStream& stream, Sums& sums, const Progress& progress) {
    stream.read([&](std::size_t file, const trace::Event& event, bool) { sums.add(file, event); },
                [&](const GroupCall& call) { sums.add(call); }, progress);
  }
  template <class Sums, class None>
  std::unique_ptr<OfParts<Sums>> read_parts(std::size_t begin, std::size_t end, std::size_t threads, const None& none);
  // Of one part, which is read by one thread.
  Progress progress_of_part();
  std::uint64_t digest() const;

  const Run& run_;
  const Clocks& clocks_;
  Groups& groups_;
  std::vector<RunPart> parts_;
  const Progress& progress_;
  SharedReading shared_;
  std::mutex progress_mutex_;
  std::size_t events_;
  std::size_t readings_ = 0;
  std::size_t done_ = 0;
  std::uint64_t untabled_events_ = 0;
};

template <class Sums, class None>
std::unique_ptr<RunReader::OfParts<Sums>> RunReader::read_parts(std::size_t begin, std::size_t end, std::size_t threads,
                                                                const None& none) {
  threads = std::min(threads, end - begin);
  for (RunPart& part : parts_) part.beside = threads;
  std::unique_ptr<OfParts<Sums>> all = none(nullptr);
  in_order(
      end - begin, threads,
      [&](std::size_t i) {
        const std::size_t p = begin + i;
        std::unique_ptr<OfParts<Sums>> part = none(&all->sums);
        CallStream stream(run_, clocks_, part->groups, parts_[p]);
        read(stream, part->sums, progress_of_part());
        if (p + 1 < parts_.size()) part->sums.end_part(stream.facts());
        part->facts = stream.facts();
        part->untabled_events = stream.untabled_events();
        part->add_left(stream.take_left());
        return part;
      },
      [&](std::size_t, std::unique_ptr<OfParts<Sums>> part) { all->merge(std::move(*part)); });
  return all;
}

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
  const Groups unread = groups_;
  const auto none = [&](const Sums* so_far) {
    return std::make_unique<OfParts<Sums>>(unread, make(so_far == nullptr ? sums : *so_far));
  };
  std::unique_ptr<OfParts<Sums>> all;
  if (shared_.is_shared()) {
    const auto [begin, end] = shared_.share_of(parts_.size());
    try {
      all = read_parts<Sums>(begin, end, threads, none);
    } catch (...) {  // as out of memory: the others hear of it
    }
    const bool is_first = shared_.is_first();
    if (!shared_.combine(all, [&] { return none(nullptr); })) {
      if (!is_first) throw NotShared();
      all = nullptr;
    }
  }
  if (all == nullptr) all = read_parts<Sums>(0, parts_.size(), threads, none);
  sums.merge(std::move(all->sums));
  groups_.merge(all->groups);
  all->left.close(groups_, [&](const GroupCall& call) { sums.add_left(call); });
  untabled_events_ = all->untabled_events;
  return std::move(all->facts);
}

}  // namespace papaya::report
