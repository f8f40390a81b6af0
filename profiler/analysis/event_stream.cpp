#include "profiler/analysis/event_stream.hpp"

#include <algorithm>
#include <deque>
#include <vector>

#include "profiler/analysis/call_stream.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/record/waits.hpp"

namespace papaya::report {
namespace {

class EventStream {
 public:
  EventStream(const Run& run, const Clocks& clocks, const OnEventInCall& on_event)
      : run_(run), clocks_(clocks), on_event_(on_event), waiting_(run.files.size()) {}

  void read() {
    Groups groups(run_);
    CallStream stream(run_, clocks_, groups);
    stream.read(
        [this](std::size_t file, const trace::Event& event, bool is_in_call) {
          add(file, event, is_in_call && static_cast<Form>(event.form) == Form::blocking);
        },
        [this](const GroupCall& call) { add(call); });
    for (std::size_t f = 0; f < waiting_.size(); ++f) {
      for (Waiting& one : waiting_[f].events) one.is_known = true;
      give(f);
    }
  }

 private:
  struct Waiting {
    trace::Event event;
    InCall its;
    bool is_known = false;  // what is in `its`
  };
  struct OfFile {
    std::uint64_t first = 0;  // number of the first
    std::deque<Waiting> events;
  };

  void add(std::size_t file, const trace::Event& event, bool waits) {
    waiting_[file].events.push_back({event, {}, !waits});
    give(file);
  }

  void add(const GroupCall& call) {
    if (call.is_compared()) compare(call);
    for (const Sighting& sighting : call.sightings) {
      // Of a call that was handed over before, since a record has it twice, it is gone.
      if (Waiting* const one = find(sighting); one != nullptr) one->is_known = true;
      give(sighting.file);
    }
  }

  Waiting* find(const Sighting& sighting) {
    OfFile& of_file = waiting_[sighting.file];
    if (sighting.number < of_file.first || sighting.number - of_file.first >= of_file.events.size()) return nullptr;
    return &of_file.events[sighting.number - of_file.first];
  }

  void compare(const GroupCall& call) {
    const std::span<const Sighting> sightings = call.sightings;
    const Order order = order_of(sightings.size(), [&](std::size_t i) { return sightings[i].arrival_ns; });
    const Sighting& last = sightings[order.last];
    const Sighting& second = sightings[order.second];
    const double margin = std::max(tie_ns, clocks_.error_between_ns(last.file, second.file, last.arrival_ns));
    for_each_wait(
        roles_of(call), sightings.size(), [&](std::size_t i) { return sightings[i].arrival_ns; },
        [&](std::size_t i, std::size_t until) {
          Waiting* const one = find(sightings[i]);
          if (one == nullptr) return;
          one->its = {.is_matched = true,
                      .waiting_ns = sightings[until].arrival_ns - sightings[i].arrival_ns,
                      .awaited = run_.files[sightings[until].file].header.rank,
                      .is_last = i == order.last && last.arrival_ns - second.arrival_ns > margin,
                      .late_ns = sightings[i].arrival_ns - sightings[order.first].arrival_ns};
        });
  }

  void give(std::size_t file) {
    OfFile& of_file = waiting_[file];
    for (; !of_file.events.empty() && of_file.events.front().is_known; ++of_file.first) {
      on_event_(file, of_file.events.front().event, of_file.events.front().its);
      of_file.events.pop_front();
    }
  }

  const Run& run_;
  const Clocks& clocks_;
  const OnEventInCall& on_event_;
  std::vector<OfFile> waiting_;  // by file
};

}  // namespace

void read_events(const Run& run, const Clocks& clocks, const OnEventInCall& on_event) {
  EventStream(run, clocks, on_event).read();
}

}  // namespace papaya::report
