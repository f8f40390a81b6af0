#include "profiler/analysis/call_stream.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <memory>
#include <tuple>
#include <unordered_map>

#include "profiler/analysis/computing.hpp"
#include "profiler/read/event_reader.hpp"

namespace papaya::report {

namespace {

// Events in memory at once, of all files, and the fewest and most of one.
constexpr std::size_t events_at_once = 1 << 17;
constexpr std::size_t least_piece = 32;
constexpr std::size_t most_piece = 4096;
// Of these so many are taken at a time: the calls that they make up stay in a core's cache meanwhile.
constexpr std::size_t sightings_in_cache = 1 << 13;
// Sightings in unfinished calls from which on those are given up that can no longer be finished.
constexpr std::size_t many_sightings = 1 << 18;
// Before a part, to know what a rank did before its first calls there.
constexpr std::uint64_t events_before_part = 32;

// A call that is being put together.
struct OpenCall {
  std::size_t group = 0;
  std::uint64_t call = 0;
  double last_ns = 0;
  std::size_t members = 0;  // that are there
  bool is_computing_known = true;
  std::size_t seen = 0;
  std::vector<Sighting> room;  // for all members or more, of which the first `seen` are sightings

  std::span<Sighting> sightings() { return std::span(room).first(seen); }
  std::span<const Sighting> sightings() const { return std::span(room).first(seen); }
  // Room for one more, with what was there before.
  Sighting& add() {
    if (seen == room.size()) room.emplace_back();
    return room[seen++];
  }
};

// A member while the run is read.
struct MemberState {
  std::uint64_t first_call = std::numeric_limits<std::uint64_t>::max();  // that is seen; of a run's beginning, any
  std::uint64_t next_call = 0;                                           // no call before it is still to come
  std::uint64_t since = 0;                                               // number of the event after its call before
  bool is_known = false;                                                 // what it had done at its last call:
  double computed_ns = 0;
  double timed_ns = 0;
};

struct OwnGroup {
  std::uint64_t id;
  std::uint32_t group;
  std::uint32_t member;
};

// Where a file is being read.
struct Cursor {
  EventReader reader;
  Computed computed;
  std::vector<OwnGroup> groups;  // ascending ids
  std::span<const trace::Event> piece;
  std::size_t next = 0;  // of the piece
  std::uint64_t number = 0;
  std::size_t next_gap = 0;
  std::uint64_t last_arrival_ticks = 0;
  const OwnGroup* last_group = nullptr;  // of the event before
  bool is_done = false;
  double computed_before_ns = 0;  // the part
  double timed_before_ns = 0;
};

class Reading {
 public:
  // `part`: null: all of the run.
  Reading(const Run& run, const Clocks& clocks, Groups& groups, const RunPart* part,
          const CallStream::OnEvent& on_event, const CallStream::OnCall& on_call)
      : run_(run), clocks_(clocks), groups_(groups), part_(part), on_event_(on_event), on_call_(on_call) {}

  void read(const Progress& progress);

  std::vector<EventFacts> facts;  // by file
  std::uint64_t untabled_events = 0;
  std::vector<LeftCall> left;

 private:
  void begin();
  EventRange range_of(std::size_t file) const;
  bool is_before_part(std::size_t file, const trace::Event& event) const;
  void take_before_part(std::size_t file, const trace::Event& event);
  void note_first_calls(const Cursor& cursor);
  // Gets the next piece if the one before is used up; false: there is none.
  bool has_next(std::size_t file);
  double arrival_ns(std::size_t file, const trace::Event& event) const {
    return clocks_.of_file(file).ns(event.arrival_ticks);
  }
  // Up to where about half of the files have given `window_` events.
  std::optional<double> next_horizon();
  void take(std::size_t file, const trace::Event& event);
  void note_facts(std::size_t file, const trace::Event& event);
  const OwnGroup* group_of(Cursor& cursor, std::uint64_t communicator) const;
  void sight(std::size_t file, const OwnGroup& own, const trace::Event& event);
  OpenCall& open_call(std::size_t group, std::uint64_t call);
  std::vector<OpenCall*>& free_of(std::size_t group) {
    return free_[static_cast<std::size_t>(std::bit_width(groups_.all()[group].members.size()))];
  }
  void hand_over(std::vector<OpenCall*>& calls);
  std::span<Sighting> in_order(OpenCall& open);
  void hand_over(OpenCall& open);
  void forget(OpenCall& open);
  bool has_ranks_elsewhere(const OpenCall& open) const;
  void leave(OpenCall& open);
  void close(std::size_t group, std::uint64_t before);
  void close_hopeless();

  const Run& run_;
  const Clocks& clocks_;
  Groups& groups_;
  const RunPart* part_;
  const CallStream::OnEvent& on_event_;
  const CallStream::OnCall& on_call_;
  std::vector<Cursor> cursors_;                                     // by file
  std::vector<std::vector<MemberState>> states_;                    // by group and member
  std::vector<std::unordered_map<std::uint64_t, OpenCall*>> open_;  // by group, by call
  std::vector<std::unique_ptr<OpenCall>> calls_;                    // all there are,
  std::array<std::vector<OpenCall*>, 65> free_;                     // of which these are not in use, by doublings of
                                                                    // the communicator's ranks that have room there,
  std::vector<OpenCall*> finished_;                                 // and these have all their ranks
  std::vector<Sighting> ordered_;                                   // of one call
  std::size_t window_ = 1;
  std::size_t sightings_ = 0;
  std::size_t events_ = 0;
  std::vector<double> ends_ns_;
};

// It has a number among its communicator's calls.
bool is_numbered(const trace::Event& event) {
  return event.call != trace::no_call && static_cast<Form>(event.form) != Form::started;
}

// Of more files, each is opened for each piece. The program may have some open.
std::size_t files_to_open() {
  constexpr rlim_t others = 256;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= others) return 0;
  return static_cast<std::size_t>(limit.rlim_cur - others);
}

void Reading::begin() {
  const std::size_t files = run_.files.size();
  const std::size_t beside = part_ == nullptr ? 1 : part_->beside;
  const std::size_t piece =
      std::clamp(events_at_once / beside / std::max<std::size_t>(files, 1), least_piece, most_piece);
  const bool keeps_open = files * beside <= files_to_open();
  window_ = std::max<std::size_t>(sightings_in_cache / std::max<std::size_t>(files, 1), 4);
  facts.resize(files);
  cursors_.reserve(files);
  for (std::size_t f = 0; f < files; ++f)
    cursors_.push_back({EventReader(run_.files[f], piece, keeps_open, range_of(f)),
                        Computed(run_.files[f], clocks_.of_file(f).ns_per_tick, part_ == nullptr || part_->is_first),
                        {},
                        {}});
  const std::span<Group> groups = groups_.all();
  open_.resize(groups.size());
  states_.resize(groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    states_[g].resize(groups[g].members.size());
    if (part_ == nullptr || part_->is_first)
      for (MemberState& state : states_[g]) {
        state.first_call = 0;
        state.is_known = true;
      }
    groups[g].is_used = false;
    for (std::size_t m = 0; m < groups[g].members.size(); ++m)
      cursors_[groups[g].members[m].file].groups.push_back(
          {groups[g].id, static_cast<std::uint32_t>(g), static_cast<std::uint32_t>(m)});
  }
  for (std::size_t f = 0; f < files; ++f) {
    Cursor& cursor = cursors_[f];
    std::stable_sort(cursor.groups.begin(), cursor.groups.end(),
                     [](const OwnGroup& a, const OwnGroup& b) { return a.id < b.id; });
    const bool is_cut = !run_.files[f].gaps.empty() && run_.files[f].gaps.front().before == 0;
    if (is_cut && (part_ == nullptr || part_->is_first) && has_next(f)) note_first_calls(cursor);
  }
}

EventRange Reading::range_of(std::size_t file) const {
  if (part_ == nullptr) return {};
  EventRange range = part_->ranges[file];
  if (!part_->is_first) range.begin -= std::min(range.begin, events_before_part);
  return range;
}

bool Reading::is_before_part(std::size_t file, const trace::Event& event) const {
  if (part_ == nullptr || part_->is_first) return false;
  const auto first_commit = static_cast<std::uint32_t>(part_->ranges[file].begin + 1);
  return static_cast<std::int32_t>(event.commit - first_commit) < 0;
}

void Reading::take_before_part(std::size_t file, const trace::Event& event) {
  Cursor& cursor = cursors_[file];
  cursor.computed.add(event, cursor.number++, cursor.reader.interval_of(event));
  cursor.computed_before_ns = cursor.computed.computed_ns();
  cursor.timed_before_ns = cursor.computed.timed_ns();
  const OwnGroup* const own = event.call == trace::no_call ? nullptr : group_of(cursor, event.communicator);
  if (own == nullptr || static_cast<Form>(event.form) != Form::blocking) return;
  MemberState& state = states_[own->group][own->member];
  state.since = cursor.number;
  state.is_known = true;
  state.computed_ns = cursor.computed.computed_ns();
  state.timed_ns = cursor.computed.timed_ns();
}

// Of a ring that wrapped: its first calls tell which are overwritten, before other ranks have collected them.
void Reading::note_first_calls(const Cursor& cursor) {
  for (const OwnGroup& own : cursor.groups)
    for (const trace::Event& event : cursor.piece)
      if (event.communicator == own.id && is_numbered(event)) {
        states_[own.group][own.member].next_call = event.call;
        break;
      }
}

bool Reading::has_next(std::size_t file) {
  Cursor& cursor = cursors_[file];
  if (cursor.next < cursor.piece.size()) return true;
  if (cursor.is_done) return false;
  cursor.piece = cursor.reader.next();
  cursor.next = 0;
  cursor.is_done = cursor.piece.empty();
  return !cursor.is_done;
}

std::optional<double> Reading::next_horizon() {
  ends_ns_.clear();
  for (std::size_t f = 0; f < cursors_.size(); ++f)
    if (has_next(f)) {
      // Of several threads, or where it is damaged, the last event need not be the latest: the next one is read anyway.
      const Cursor& cursor = cursors_[f];
      const std::size_t end = std::min(cursor.next + window_, cursor.piece.size());
      ends_ns_.push_back(std::max(arrival_ns(f, cursor.piece[cursor.next]), arrival_ns(f, cursor.piece[end - 1])));
    }
  if (ends_ns_.empty()) return {};
  const auto middle = ends_ns_.begin() + static_cast<std::ptrdiff_t>(ends_ns_.size() / 2);
  std::nth_element(ends_ns_.begin(), middle, ends_ns_.end());
  return *middle;
}

void Reading::read(const Progress& progress) {
  begin();
  const std::size_t total = part_ == nullptr ? events_of(run_) : 0;
  while (const std::optional<double> horizon_ns = next_horizon()) {
    if (progress) progress(part_ == nullptr ? std::min(events_, total) : events_, total);
    for (std::size_t f = 0; f < cursors_.size(); ++f) {
      if (f + 1 < cursors_.size()) cursors_[f + 1].reader.prefetch(cursors_[f + 1].next, window_);
      Cursor& cursor = cursors_[f];
      const NodeClock& clock = clocks_.of_file(f);
      while (has_next(f) && clock.ns(cursor.piece[cursor.next].arrival_ticks) <= *horizon_ns)
        take(f, cursor.piece[cursor.next++]);
    }
    hand_over(finished_);
    if (sightings_ > many_sightings) close_hopeless();
  }
  for (std::size_t f = 0; f < cursors_.size(); ++f) facts[f].skipped = cursors_[f].reader.skipped();
  for (std::size_t g = 0; g < open_.size(); ++g) close(g, std::numeric_limits<std::uint64_t>::max());
}

void Reading::note_facts(std::size_t file, const trace::Event& event) {
  EventFacts& own = facts[file];
  Cursor& cursor = cursors_[file];
  const std::vector<Gap>& gaps = run_.files[file].gaps;
  if (own.kept == 0) own.first_ticks = event.arrival_ticks;
  for (; cursor.next_gap < gaps.size() && gaps[cursor.next_gap].before <= own.kept; ++cursor.next_gap)
    if (gaps[cursor.next_gap].before == own.kept && own.kept > 0)
      own.gaps.emplace_back(cursor.last_arrival_ticks, event.arrival_ticks);
  cursor.last_arrival_ticks = event.arrival_ticks;
  ++own.kept;
  own.last_ticks = std::max({own.last_ticks, event.arrival_ticks, event.exit_ticks});
  if (blocks(static_cast<Form>(event.form))) own.note(event);
}

const OwnGroup* Reading::group_of(Cursor& cursor, std::uint64_t communicator) const {
  if (cursor.last_group != nullptr && cursor.last_group->id == communicator) return cursor.last_group;
  const auto found = std::lower_bound(cursor.groups.begin(), cursor.groups.end(), communicator,
                                      [](const OwnGroup& own, std::uint64_t id) { return own.id < id; });
  if (found == cursor.groups.end() || found->id != communicator) return nullptr;
  cursor.last_group = &*found;
  return cursor.last_group;
}

void Reading::take(std::size_t file, const trace::Event& event) {
  if (is_before_part(file, event)) return take_before_part(file, event);
  Cursor& cursor = cursors_[file];
  note_facts(file, event);
  cursor.computed.add(event, cursor.number, cursor.reader.interval_of(event));
  facts[file].timed_ns = cursor.computed.timed_ns() - cursor.timed_before_ns;
  const OwnGroup* const own = event.call == trace::no_call ? nullptr : group_of(cursor, event.communicator);
  if (on_event_) on_event_(file, event, own != nullptr && groups_.all()[own->group].is_consistent);
  if (own != nullptr) {
    if (is_numbered(event)) sight(file, *own, event);
  } else if (event.call != trace::no_call)
    ++untabled_events;
  ++cursor.number;
  ++events_;
}

OpenCall& Reading::open_call(std::size_t group, std::uint64_t call) {
  OpenCall*& open = open_[group].try_emplace(call, nullptr).first->second;
  if (open != nullptr) return *open;
  std::vector<OpenCall*>& free = free_of(group);
  if (free.empty()) free.push_back(calls_.emplace_back(std::make_unique<OpenCall>()).get());
  open = free.back();
  free.pop_back();
  open->group = group;
  open->call = call;
  open->last_ns = std::numeric_limits<double>::lowest();
  open->members = 0;
  open->is_computing_known = true;
  open->seen = 0;
  if (const std::size_t members = groups_.all()[group].members.size(); open->room.size() < members)
    open->room = std::vector<Sighting>(members);
  return *open;
}

void Reading::sight(std::size_t file, const OwnGroup& own, const trace::Event& event) {
  Group& group = groups_.all()[own.group];
  Member& member = group.members[own.member];
  group.is_used = true;
  member.first_kept_call = std::min(member.first_kept_call, event.call);
  // The table's own count is brought up to date only when the communicator or the job ends.
  member.calls = std::max(member.calls, event.call + 1);
  if (!group.is_consistent) return;
  Cursor& cursor = cursors_[file];
  MemberState& state = states_[own.group][own.member];
  OpenCall& open = open_call(own.group, event.call);
  // Only damaged records have a call twice.
  const bool is_there = event.call < state.next_call &&
                        std::any_of(open.room.begin(), open.room.begin() + static_cast<std::ptrdiff_t>(open.seen),
                                    [&](const Sighting& other) { return other.member == own.member; });
  state.first_call = std::min(state.first_call, event.call);
  state.next_call = std::max(state.next_call, event.call + 1);
  Sighting& sighting = open.add();
  sighting.bytes = event.bytes;
  sighting.call_site = event.call_site;
  sighting.algorithm = event.algorithm;
  sighting.root = event.root;
  sighting.collective = event.collective;
  sighting.form = event.form;
  sighting.reason = event.reason;
  sighting.thread = event.thread;
  sighting.phase = event.phase;
  sighting.member = own.member;
  sighting.file = static_cast<std::uint32_t>(file);
  sighting.number = static_cast<std::uint32_t>(cursor.number);  // no record has room for more
  const NodeClock& clock = clocks_.of_file(file);
  sighting.arrival_ns = clock.ns(event.arrival_ticks);
  sighting.exit_ns = event.exit_ticks == 0 ? std::numeric_limits<double>::quiet_NaN() : clock.ns(event.exit_ticks);
  open.is_computing_known = open.is_computing_known && state.is_known;
  sighting.computed_ns = cursor.computed.computed_ns() - state.computed_ns;
  sighting.computed_until_ns = cursor.computed.computed_ns() - cursor.computed_before_ns;
  sighting.timed_ns = cursor.computed.timed_ns() - state.timed_ns;
  sighting.events_since = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(cursor.number - state.since, std::numeric_limits<std::uint32_t>::max()));
  sighting.longest_site = cursor.computed.longest().since(state.since).site;
  const Longest::Entry wait = cursor.computed.waits().since(state.since);
  sighting.waited_for = static_cast<std::int32_t>(wait.site) - 1;
  sighting.waited_ns = wait.ns;
  sighting.just_waited_for = cursor.computed.waited_for();
  sighting.just_waited_ns = cursor.computed.waited_ns();
  if (static_cast<Form>(event.form) == Form::blocking) {
    state.since = cursor.number + 1;
    state.is_known = true;
    state.computed_ns = cursor.computed.computed_ns();
    state.timed_ns = cursor.computed.timed_ns();
  }
  open.last_ns = std::max(open.last_ns, sighting.arrival_ns);
  ++sightings_;
  if (is_there) return;
  if (++open.members == group.members.size()) finished_.push_back(&open);
}

void Reading::hand_over(std::vector<OpenCall*>& calls) {
  std::stable_sort(calls.begin(), calls.end(),
                   [](const OpenCall* a, const OpenCall* b) { return a->last_ns < b->last_ns; });
  for (OpenCall* const open : calls) {
    hand_over(*open);
    forget(*open);
  }
  calls.clear();
}

void Reading::forget(OpenCall& open) {
  sightings_ -= open.seen;
  open_[open.group].erase(open.call);
  free_of(open.group).push_back(&open);
}

std::span<Sighting> Reading::in_order(OpenCall& open) {
  const auto key = [](const Sighting& sighting) {
    return std::tuple(sighting.member, sighting.thread, sighting.number);
  };
  const auto is_before = [&](const Sighting& a, const Sighting& b) { return key(a) < key(b); };
  const std::span<Sighting> own = open.sightings();
  if (std::is_sorted(own.begin(), own.end(), is_before)) return own;
  if (open.members != own.size() || own.size() != groups_.all()[open.group].members.size()) {
    std::sort(own.begin(), own.end(), is_before);
    return own;
  }
  if (ordered_.size() < own.size()) ordered_.resize(own.size());
  for (const Sighting& sighting : own) ordered_[sighting.member] = sighting;
  return std::span(ordered_).first(own.size());
}

void Reading::hand_over(OpenCall& open) {
  const std::span<Sighting> sightings = in_order(open);
  GroupCall call{&groups_.all()[open.group], open.group, open.call, sightings, {}, false, {}};
  if (!open.is_computing_known) forget_computing(call, sightings);
  if (!groups_.judge(call)) return;
  on_call_(call);
}

// Of a part: a rank that the call lacks may have made it before the part, or after.
bool Reading::has_ranks_elsewhere(const OpenCall& open) const {
  const std::vector<MemberState>& states = states_[open.group];
  std::vector<bool> is_there(states.size());
  for (const Sighting& sighting : open.sightings()) is_there[sighting.member] = true;
  for (std::size_t m = 0; m < states.size(); ++m)
    if (!is_there[m] && (open.call < states[m].first_call || states[m].next_call <= open.call)) return true;
  return false;
}

void Reading::leave(OpenCall& open) {
  const std::span<const Sighting> own = open.sightings();
  left.push_back({open.group, open.call, open.is_computing_known, {own.begin(), own.end()}});
}

// Those that lack a rank.
void Reading::close(std::size_t group, std::uint64_t before) {
  std::vector<OpenCall*> calls;
  for (const auto& [call, open] : open_[group])
    if (call < before) calls.push_back(open);
  std::sort(calls.begin(), calls.end(), [](const OpenCall* a, const OpenCall* b) { return a->call < b->call; });
  if (part_ != nullptr) {
    const auto is_left = [this](const OpenCall* open) { return has_ranks_elsewhere(*open); };
    const auto first_left = std::stable_partition(calls.begin(), calls.end(), std::not_fn(is_left));
    std::for_each(first_left, calls.end(), [this](OpenCall* open) {
      leave(*open);
      forget(*open);
    });
    calls.erase(first_left, calls.end());
  }
  hand_over(calls);
}

void Reading::close_hopeless() {
  const std::span<const Group> groups = groups_.all();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (open_[g].empty()) continue;
    std::uint64_t next = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t latest = 0;
    for (std::size_t m = 0; m < groups[g].members.size(); ++m) {
      const Cursor& cursor = cursors_[groups[g].members[m].file];
      latest = std::max(latest, states_[g][m].next_call);
      if (!cursor.is_done) next = std::min(next, states_[g][m].next_call);
    }
    // Of a rank whose record has ended, all calls have been seen: nothing that lacks it can be finished.
    close(g, std::min(next, latest));
  }
}

}  // namespace

void forget_computing(GroupCall& call, std::span<Sighting> sightings) {
  call.is_computing_known = false;
  for (Sighting& sighting : sightings) sighting.computed_ns = sighting.timed_ns = 0;
}

CallStream::CallStream(const Run& run, const Clocks& clocks, Groups& groups, RunPart part, bool is_whole)
    : run_(run), clocks_(clocks), groups_(groups), part_(std::move(part)), is_whole_(is_whole) {}

void CallStream::read(const OnEvent& on_event, const OnCall& on_call, const Progress& progress) {
  Reading reading(run_, clocks_, groups_, is_whole_ ? nullptr : &part_, on_event, on_call);
  reading.read(progress);
  left_ = std::move(reading.left);
  facts_ = std::move(reading.facts);
  untabled_events_ = reading.untabled_events;
}

}  // namespace papaya::report
