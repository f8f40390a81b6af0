#include "profiler/analysis/calls.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "profiler/analysis/analysis.hpp"

namespace papaya::report {

std::vector<MatchedCall> matched_calls(const Run& run, const Clocks& clocks) {
  std::map<std::uint64_t, std::int32_t> sizes;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::int32_t> ranks;  // of a communicator's id and a file
  for (std::uint32_t f = 0; f < run.files.size(); ++f)
    for (const trace::Communicator& communicator : run.files[f].communicators) {
      sizes.try_emplace(communicator.id, communicator.size);
      ranks.try_emplace({communicator.id, f}, communicator.rank);
    }

  struct Sighting {
    std::uint64_t communicator;
    std::uint64_t call;
    std::uint32_t file;
    std::uint32_t event;
  };
  std::vector<Sighting> sightings;
  for (std::uint32_t f = 0; f < run.files.size(); ++f)
    for (std::uint32_t e = 0; e < run.files[f].events.size(); ++e) {
      const trace::Event& event = run.files[f].events[e];
      if (event.call != trace::no_call && static_cast<Form>(event.form) == Form::blocking)
        sightings.push_back({event.communicator, event.call, f, e});
    }
  std::sort(sightings.begin(), sightings.end(), [](const Sighting& a, const Sighting& b) {
    return std::tie(a.communicator, a.call, a.file, a.event) < std::tie(b.communicator, b.call, b.file, b.event);
  });

  std::vector<MatchedCall> calls;
  for (std::size_t begin = 0; begin < sightings.size();) {
    const Sighting& first = sightings[begin];
    std::size_t end = begin + 1;
    while (end < sightings.size() && sightings[end].communicator == first.communicator && sightings[end].call == first.call) ++end;
    const auto size = sizes.find(first.communicator);
    MatchedCall call{first.communicator, first.call, {}, 0, 0, 0};
    bool fits = size != sizes.end() && size->second >= 2 && end - begin == static_cast<std::size_t>(size->second);
    for (std::size_t i = begin; i < end && fits; ++i) {
      const Sighting& own = sightings[i];
      const trace::Event& event = run.files[own.file].events[own.event];
      fits = event.collective == run.files[first.file].events[first.event].collective &&
             (i == begin || own.file != sightings[i - 1].file);
      const auto rank = ranks.find({own.communicator, own.file});
      fits = fits && rank != ranks.end();
      if (!fits) break;
      call.ranks.push_back({own.file, own.event, rank->second, clocks.of_file(own.file).ns(event.arrival_ticks)});
    }
    begin = end;
    if (!fits) continue;
    const auto later = [&](std::size_t a, std::size_t b) { return call.ranks[a].arrival_ns > call.ranks[b].arrival_ns; };
    call.first_ns = call.ranks[0].arrival_ns;
    call.second = 1;
    if (later(1, 0)) std::swap(call.last, call.second);
    for (std::size_t i = 1; i < call.ranks.size(); ++i) {
      call.first_ns = std::min(call.first_ns, call.ranks[i].arrival_ns);
      if (i == 1) continue;
      if (later(i, call.last)) {
        call.second = call.last;
        call.last = i;
      } else if (later(i, call.second)) {
        call.second = i;
      }
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

Roles roles_of(const Run& run, const MatchedCall& call) {
  const trace::Event& event = run.files[call.ranks[0].file].events[call.ranks[0].event];
  Roles roles{static_cast<Collective>(event.collective), call.ranks.size(), {}};
  const Need need = need_of(roles.collective);
  if (need == Need::root || need == Need::root_needs_all)
    roles.root = static_cast<std::size_t>(
        std::find_if(call.ranks.begin(), call.ranks.end(), [&](const RankInCall& one) { return one.rank == event.root; }) -
        call.ranks.begin());
  if (need == Need::lower_ranks) {
    roles.by_rank.resize(call.ranks.size());
    std::iota(roles.by_rank.begin(), roles.by_rank.end(), std::size_t{0});
    std::sort(roles.by_rank.begin(), roles.by_rank.end(),
              [&](std::size_t a, std::size_t b) { return call.ranks[a].rank < call.ranks[b].rank; });
  }
  return roles;
}

void earliest_exits(const Roles& roles, std::span<const double> arrivals_ns, std::span<double> exits_ns) {
  for_each_wait(
      roles, arrivals_ns.size(), [&](std::size_t i) { return arrivals_ns[i]; },
      [&](std::size_t i, std::size_t until) { exits_ns[i] = arrivals_ns[until]; });
}

}  // namespace papaya::report
