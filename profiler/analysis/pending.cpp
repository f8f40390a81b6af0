#include "profiler/analysis/pending.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/mpi_name.hpp"
#include "profiler/analysis/archive.hpp"
#include "profiler/analysis/sites.hpp"

namespace papaya::report {
namespace {

constexpr std::size_t most_last_signs = 16;

// What a rank is inside, or else left last.
LastSign last_sign_of(const Run& run, const Clocks& clocks, const Groups& groups, const EventFacts& facts,
                      std::size_t file) {
  LastSign sign;
  sign.rank = run.files[file].header.rank;
  const std::optional<trace::Event>& last = facts.last;
  if (!last) return sign;
  sign.name = mpi_name(static_cast<Collective>(last->collective), static_cast<Form>(last->form));
  const Group* const group = groups.find(last->communicator);
  sign.communicator = group != nullptr ? group->name : fmt::format("communicator {:#x}", last->communicator);
  sign.call = last->call;
  sign.inside = last->exit_ticks == 0;
  sign.unix_ns =
      clocks.base_unix_ns() +
      static_cast<std::int64_t>(clocks.of_file(file).ns(sign.inside ? last->arrival_ticks : last->exit_ticks));
  sign.call_site = frames_of(run.files[file], *last);
  return sign;
}

// Of `ranks`, ascending, the first few.
std::vector<LastSign> last_signs_of(const Run& run, const Clocks& clocks, const Groups& groups,
                                    std::span<const EventFacts> facts, std::span<const std::int32_t> ranks) {
  std::vector<LastSign> signs;
  for (std::size_t i = 0; i < run.files.size() && signs.size() < most_last_signs; ++i)
    if (std::binary_search(ranks.begin(), ranks.end(), run.files[i].header.rank))
      signs.push_back(last_sign_of(run, clocks, groups, facts[i], i));
  return signs;
}

}  // namespace

// The others of its figures are known at the end.
void Unfinished::pack(Archive& archive) {
  archive(call.name, call.communicator, call.communicator_id, call.ranks, call.call, call.inside, call.not_arrived,
          call.unknown_not_arrived, call.unread_ranks, call.call_site, call.conflict, call.waited_ns,
          call.since_unix_ns, call.first_ns, call.arrivals, absent);
}

Unfinished unfinished_call(const Run& run, const Clocks& clocks, const GroupCall& call) {
  const Group& group = *call.group;
  const std::span<const Sighting> sightings = call.sightings;
  const auto world_rank = [&](std::size_t file) { return run.files[file].header.rank; };
  Unfinished unfinished;
  PendingCall& pending = unfinished.call;
  std::vector<std::int32_t> inside;
  std::vector<std::int32_t>& absent = unfinished.absent;
  double first_arrival = std::numeric_limits<double>::max();
  std::size_t next = 0;
  for (std::size_t m = 0; m < group.members.size(); ++m) {
    const Member& member = group.members[m];
    if (next < sightings.size() && sightings[next].member == m) {
      while (next < sightings.size() && sightings[next].member == m) {
        const Sighting& own = sightings[next];
        if (std::isnan(own.exit_ns)) {
          pending.name = mpi_name(static_cast<Collective>(own.collective), static_cast<Form>(own.form));
          if (pending.call_site.empty()) pending.call_site = frames_of(run.files[member.file], own.call_site);
          inside.push_back(world_rank(member.file));
          pending.arrivals.push_back({inside.back(), own.arrival_ns});
          first_arrival = std::min(first_arrival, own.arrival_ns);
        }
        ++next;
      }
    } else if (member.calls <= call.call) {
      absent.push_back(world_rank(member.file));
    }
  }
  const std::uint64_t unknown = static_cast<std::uint64_t>(group.size) > group.members.size()
                                    ? static_cast<std::uint64_t>(group.size) - group.members.size()
                                    : 0;
  const std::uint64_t absent_ranks = run.missing_ranks + run.unwanted_ranks;
  if (group.size == run.ranks && unknown > 0) {
    // Everybody is a member, so those without an entry are known by name; some may only be without a usable file.
    std::vector<bool> is_member(run.files.size());
    for (const Member& member : group.members) is_member[member.file] = true;
    for (std::size_t i = 0; i < run.files.size(); ++i) {
      if (!is_member[i]) absent.push_back(world_rank(i));
    }
    pending.unread_ranks = absent_ranks > 0;
  } else if (unknown > 0) {
    pending.unread_ranks = absent_ranks > 0;
    pending.unknown_not_arrived = unknown > absent_ranks ? unknown - absent_ranks : 0;
  }
  std::sort(inside.begin(), inside.end());
  inside.erase(std::unique(inside.begin(), inside.end()), inside.end());
  std::sort(absent.begin(), absent.end());
  pending.conflict = call.conflict;
  pending.communicator = group.name;
  pending.call = call.call;
  pending.inside = to_ranges(inside);
  pending.not_arrived = to_ranges(absent);
  pending.first_ns = first_arrival;
  for (PendingArrival& arrival : pending.arrivals) arrival.late_ns -= first_arrival;
  pending.communicator_id = group.id;
  pending.ranks = group.size;
  pending.since_unix_ns = clocks.base_unix_ns() + static_cast<std::int64_t>(first_arrival);
  return unfinished;
}

PendingCall pending_call(Unfinished unfinished, const Run& run, const Clocks& clocks, const Groups& groups,
                         std::span<const EventFacts> facts, double last_sign_ns) {
  unfinished.call.waited_ns = std::max(0.0, last_sign_ns - unfinished.call.first_ns);
  unfinished.call.last_signs = last_signs_of(run, clocks, groups, facts, unfinished.absent);
  return std::move(unfinished.call);
}

}  // namespace papaya::report
