#include "profiler/analysis/run_parts.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include "profiler/read/file_source.hpp"
#include "profiler/record/checksum.hpp"

namespace papaya::report {
namespace {

constexpr std::size_t most_parts = 64;
// Ranks whose middle one says when a part begins.
constexpr std::size_t most_asked = 15;
// Processes that read a run together. Each opens all files, and the servers of a file system feel that.
constexpr std::size_t most_readers = 16;

std::uint64_t first_number(const RankFile& file) {
  const RankHeader& header = file.header;
  return header.event_count > header.event_capacity ? header.event_count - header.event_capacity : 0;
}

bool can_be_parted(const Run& run) {
  return run.missing.empty() && std::all_of(run.files.begin(), run.files.end(), [](const RankFile& file) {
           return !file.ring_path.empty() && file.spilled_events == 0 && file.header.end_ticks != 0 &&
                  file.header.version == trace::format_version &&
                  (file.gaps.empty() || (file.gaps.size() == 1 && file.gaps.front().before == 0));
         });
}

// Looks for moments in the ring of one rank.
class Ring {
 public:
  Ring(const RankFile& file, const NodeClock& clock) : file_(file), clock_(clock), source_(file.ring_path) {}

  // Of the event of this number; none: it cannot be read.
  std::optional<double> arrival_ns(std::uint64_t number) const {
    trace::Event event;
    const std::uint64_t slot = number & (file_.header.event_capacity - 1);
    if (!source_.read(file_.header.events_offset + slot * sizeof event, &event, sizeof event)) return {};
    return clock_.ns(event.arrival_ticks);
  }

  // The number of the first event from `begin` on that arrived at `time_ns` or later. Where arrivals do not ascend, as
  // those of several threads, one of them.
  std::uint64_t find(double time_ns, std::uint64_t begin) const {
    std::uint64_t end = file_.header.event_count;
    while (begin < end) {
      const std::uint64_t middle = begin + (end - begin) / 2;
      const std::optional<double> arrival = arrival_ns(middle);
      if (arrival && *arrival < time_ns)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin;
  }

 private:
  const RankFile& file_;
  const NodeClock& clock_;
  const FileSource source_;
};

// When the parts after the first one begin.
std::vector<double> bounds_of(const Run& run, const Clocks& clocks, std::size_t parts) {
  std::vector<std::vector<double>> all(parts - 1);
  const std::size_t asked = std::min(run.files.size(), most_asked);
  for (std::size_t a = 0; a < asked; ++a) {
    const std::size_t f = a * run.files.size() / asked;
    const RankFile& file = run.files[f];
    const Ring ring(file, clocks.of_file(f));
    const std::uint64_t first = first_number(file);
    for (std::size_t p = 1; p < parts; ++p)
      if (const auto arrival = ring.arrival_ns(first + (file.header.event_count - first) * p / parts); arrival)
        all[p - 1].push_back(*arrival);
  }
  std::vector<double> bounds;
  for (std::vector<double>& of_part : all) {
    if (of_part.empty()) continue;
    const auto middle = of_part.begin() + static_cast<std::ptrdiff_t>(of_part.size() / 2);
    std::nth_element(of_part.begin(), middle, of_part.end());
    bounds.push_back(*middle);
  }
  std::sort(bounds.begin(), bounds.end());
  return bounds;
}

}  // namespace

std::vector<RunPart> parts_of(const Run& run, const Clocks& clocks, std::size_t events) {
  const std::size_t files = run.files.size();
  const std::size_t wanted = std::min(most_parts, events_of(run) / events);
  if (wanted < 2 || !can_be_parted(run)) return {{std::vector<EventRange>(files), true, 1}};
  const std::vector<double> bounds = bounds_of(run, clocks, wanted);
  std::vector<RunPart> parts(bounds.size() + 1);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    parts[p].is_first = p == 0;
    parts[p].ranges.resize(files);
  }
  for (std::size_t f = 0; f < files; ++f) {
    const Ring ring(run.files[f], clocks.of_file(f));
    std::uint64_t begin = first_number(run.files[f]);
    for (std::size_t p = 0; p < parts.size(); ++p) {
      parts[p].ranges[f].begin = begin;
      if (p < bounds.size()) parts[p].ranges[f].end = begin = ring.find(bounds[p], begin);
    }
  }
  return parts;
}

namespace {

void hand_over(LeftCall& left, Groups& groups, const CallStream::OnCall& on_call) {
  std::vector<Sighting>& sightings = left.sightings;
  std::sort(sightings.begin(), sightings.end(), [](const Sighting& a, const Sighting& b) {
    return std::tie(a.member, a.thread, a.number) < std::tie(b.member, b.thread, b.number);
  });
  GroupCall call{&groups.all()[left.group], left.group, left.call, sightings, {}, false, {}};
  if (!left.is_computing_known) forget_computing(call, sightings);
  if (groups.judge(call)) on_call(call);
}

double last_ns(const std::vector<Sighting>& sightings) {
  return std::max_element(sightings.begin(), sightings.end(),
                          [](const auto& a, const auto& b) { return a.arrival_ns < b.arrival_ns; })
      ->arrival_ns;
}

}  // namespace

void LeftCalls::add(std::vector<LeftCall> left, Groups& groups, const CallStream::OnCall& on_call) {
  std::vector<decltype(open_)::iterator> finished;
  for (LeftCall& call : left) {
    const auto at = open_.try_emplace({call.group, call.call}, LeftCall{call.group, call.call, true, {}}).first;
    LeftCall& own = at->second;
    own.is_computing_known = own.is_computing_known && call.is_computing_known;
    own.sightings.insert(own.sightings.end(), call.sightings.begin(), call.sightings.end());
    if (own.sightings.size() == groups.all()[call.group].members.size()) finished.push_back(at);
  }
  std::sort(finished.begin(), finished.end(),
            [](const auto& a, const auto& b) { return last_ns(a->second.sightings) < last_ns(b->second.sightings); });
  for (const auto& at : finished) {
    hand_over(at->second, groups, on_call);
    open_.erase(at);
  }
}

void LeftCalls::close(Groups& groups, const CallStream::OnCall& on_call) {
  for (auto& [key, left] : open_) hand_over(left, groups, on_call);
  open_.clear();
}

std::vector<LeftCall> LeftCalls::take() {
  std::vector<LeftCall> all;
  for (auto& [key, left] : open_) all.push_back(std::move(left));
  open_.clear();
  return all;
}

void LeftCalls::pack(Archive& archive) {
  archive(open_);
}

RunReader::RunReader(const Run& run, const Clocks& clocks, Groups& groups, std::vector<RunPart> parts,
                     const Progress& progress)
    : run_(run),
      clocks_(clocks),
      groups_(groups),
      parts_(std::move(parts)),
      progress_(progress),
      events_(events_of(run)) {}

void RunReader::share(Readers& readers, std::size_t threads) {
  const std::size_t wanted = std::min(most_readers, (parts_.size() + threads - 1) / threads);
  shared_.begin(readers, std::min(wanted, readers.all()), digest());
}

void RunReader::join(Readers& readers, std::size_t count) {
  if (!shared_.join(readers, count, digest())) throw NotShared();
}

// Of what the figures follow from, as far as a file system may show it to one process earlier than to another.
std::uint64_t RunReader::digest() const {
  std::uint64_t sum = 0;
  const auto add = [&sum](const auto& value) { sum = trace::arrival_key(sum, crc32c(&value, sizeof value)); };
  add(parts_.size());
  for (std::size_t f = 0; f < run_.files.size(); ++f) {
    const RankHeader& header = run_.files[f].header;
    add(header.rank);
    add(header.event_count);
    add(header.ns_per_tick);
    add(header.init_ticks);
    add(header.end_ticks);
    for (const trace::ClockOffset& clock : header.clock) add(clock);
    for (const RunPart& part : parts_) {
      add(part.ranges[f].begin);
      add(part.ranges[f].end);
    }
  }
  return sum;
}

Progress RunReader::progress_of_part() {
  if (!progress_) return {};
  return [this, before = std::size_t{0}](std::size_t done, std::size_t) mutable {
    const std::lock_guard lock(progress_mutex_);
    done_ += done - std::exchange(before, done);
    progress_(std::min(done_, 2 * events_), 2 * events_);
  };
}

}  // namespace papaya::report
