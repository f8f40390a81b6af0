#include "profiler/analysis/matching.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "base/mpi_name.hpp"
#include "profiler/analysis/communicator_names.hpp"

namespace papaya::report {

Matching::Matching(const Run& run) : run_(run) {
  add_communicators();
  add_events();
  for (Group& group : groups_)
    std::sort(group.sightings.begin(), group.sightings.end(), [](const Sighting& a, const Sighting& b) {
      return std::tie(a.call, a.member, a.thread, a.event) < std::tie(b.call, b.member, b.thread, b.event);
    });
}

const Group* Matching::find(std::uint64_t communicator) const {
  const auto found = index_.find(communicator);
  return found == index_.end() ? nullptr : &groups_[found->second];
}

void Matching::add_communicators() {
  const std::map<std::uint64_t, std::string> names = communicator_names(run_);
  for (std::size_t i = 0; i < run_.files.size(); ++i) {
    for (const trace::Communicator& communicator : run_.files[i].communicators) {
      const auto [at, is_new] = index_.try_emplace(communicator.id, groups_.size());
      if (is_new) {
        groups_.emplace_back();
        groups_.back().id = communicator.id;
        groups_.back().size = communicator.size;
        groups_.back().name = names.at(communicator.id);
      }
      Group& group = groups_[at->second];
      if (group.size != communicator.size) group.is_consistent = false;
      group.members.push_back({i, communicator.rank, communicator.calls});
    }
  }
  for (Group& group : groups_) {
    std::stable_sort(group.members.begin(), group.members.end(),
                     [](const Member& a, const Member& b) { return a.rank < b.rank; });
    for (std::size_t m = 1; m < group.members.size(); ++m)
      if (group.members[m].rank == group.members[m - 1].rank) group.is_consistent = false;
  }
}

void Matching::add_events() {
  // Where in its group each file is a member.
  std::vector<std::unordered_map<std::size_t, std::uint32_t>> member_index(run_.files.size());
  for (std::size_t g = 0; g < groups_.size(); ++g)
    for (std::size_t m = 0; m < groups_[g].members.size(); ++m)
      member_index[groups_[g].members[m].file].try_emplace(g, static_cast<std::uint32_t>(m));
  for (std::size_t i = 0; i < run_.files.size(); ++i) {
    std::uint64_t id = 0;
    Group* group = nullptr;
    std::uint32_t member = 0;
    const std::vector<trace::Event>& events = run_.files[i].events;
    for (std::size_t e = 0; e < events.size(); ++e) {
      const trace::Event& event = events[e];
      if (event.call == trace::no_call) continue;
      if (group == nullptr || event.communicator != id) {
        group = nullptr;
        const auto at = index_.find(event.communicator);
        if (at != index_.end()) {
          const auto own = member_index[i].find(at->second);
          if (own != member_index[i].end()) {
            group = &groups_[at->second];
            member = own->second;
            id = event.communicator;
          }
        }
      }
      if (group == nullptr) {
        ++untabled_events_;
        continue;
      }
      Member& self = group->members[member];
      self.first_kept_call = std::min(self.first_kept_call, event.call);
      // The table's own count is brought up to date only when the communicator or the job ends.
      self.calls = std::max(self.calls, event.call + 1);
      group->sightings.push_back({event.call, member, static_cast<std::uint32_t>(e), event.thread});
    }
  }
}

bool Matching::judge(GroupCall& call) const {
  bool is_blocking = false;
  for (const Sighting& sighting : call.sightings) {
    const trace::Event& event = event_of(*call.group, sighting);
    const bool own = static_cast<Form>(event.form) == Form::blocking;
    is_blocking = is_blocking || own;
    call.is_inside = call.is_inside || (own && event.exit_ticks == 0);
  }
  if (!is_blocking) return false;
  call.conflict = conflict_in(call);
  call.match = match_of(call);
  return true;
}

// All ranks must have made the same call: other programs are erroneous, and it is worth telling where.
std::string Matching::conflict_in(const GroupCall& call) const {
  const Group& group = *call.group;
  const Sighting& first = call.sightings.front();
  const auto call_of = [&](const Sighting& sighting) {
    const trace::Event& event = event_of(group, sighting);
    // On inter-communicators roots may be MPI_ROOT and MPI_PROC_NULL, both negative.
    return std::tuple(event.collective, event.form,
                      has_root(static_cast<Collective>(event.collective)) ? std::max(event.root, -1) : -1);
  };
  const Sighting* other = nullptr;
  for (std::size_t i = 1; i < call.sightings.size() && other == nullptr; ++i)
    if (call_of(call.sightings[i]) != call_of(first) || call.sightings[i].member == call.sightings[i - 1].member)
      other = &call.sightings[i];
  if (other == nullptr) return {};
  const auto text = [&](const Sighting& sighting) {
    const auto [collective, form, root] = call_of(sighting);
    std::string name = mpi_name(static_cast<Collective>(collective), static_cast<Form>(form));
    if (root >= 0) name += fmt::format(" with root {}", root);
    return fmt::format("rank {} called {}", run_.files[group.members[sighting.member].file].header.rank, name);
  };
  return fmt::format("at call {} on {}, {} and {}", first.call, group.name, text(first), text(*other));
}

Match Matching::match_of(const GroupCall& call) const {
  const Group& group = *call.group;
  const std::size_t seen = call.sightings.size();
  if (!call.conflict.empty()) return Match::conflicting;
  if (group.size < 2) return Match::alone;
  if (seen == static_cast<std::size_t>(group.size)) return Match::complete;
  // Ranks without a usable record cannot be there, and are not waited for.
  const std::uint64_t unknown = static_cast<std::uint64_t>(group.size) - group.members.size();
  if (seen == group.members.size() && seen >= 2 && unknown <= run_.missing_ranks + run_.unwanted_ranks)
    return Match::partial;
  const std::uint64_t number = call.sightings.front().call;
  Match match = Match::pending;
  std::size_t next = 0;
  for (std::size_t m = 0; m < group.members.size(); ++m) {
    if (next < seen && call.sightings[next].member == m) {
      ++next;
      continue;
    }
    const Member& member = group.members[m];
    if (number >= member.calls) continue;
    const std::vector<Gap>& gaps = run_.files[member.file].gaps;
    const bool may_be_lost = !gaps.empty() && (gaps.back().before > 0 || number < member.first_kept_call);
    if (may_be_lost) return Match::overwritten;
    match = Match::unmatched;
  }
  return match;
}

std::vector<MatchedCall> matched_calls(const Run& run, const Clocks& clocks) {
  const Matching matching(run);
  std::vector<MatchedCall> calls;
  for (const Group& group : matching.groups())
    matching.for_each_call(group, [&](const GroupCall& call) {
      if (call.match != Match::complete && call.match != Match::partial) return;
      MatchedCall& matched = calls.emplace_back();
      matched.communicator = group.id;
      matched.call = call.sightings.front().call;
      matched.is_complete = call.match == Match::complete;
      for (const Sighting& sighting : call.sightings) {
        const Member& member = group.members[sighting.member];
        matched.ranks.push_back({static_cast<std::uint32_t>(member.file), sighting.event, member.rank,
                                 clocks.of_file(member.file).ns(matching.event_of(group, sighting).arrival_ticks)});
      }
      std::sort(matched.ranks.begin(), matched.ranks.end(),
                [](const auto& a, const auto& b) { return a.file < b.file; });
      matched.order = order_of(matched.ranks.size(), [&](std::size_t i) { return matched.ranks[i].arrival_ns; });
    });
  return calls;
}

bool has_root(Collective collective) {
  const Need need = need_of(collective);
  return need == Need::root || need == Need::root_needs_all;
}

Roles roles_of(const Run& run, const MatchedCall& call) {
  const trace::Event& event = run.files[call.ranks[0].file].events[call.ranks[0].event];
  Roles roles{static_cast<Collective>(event.collective), call.ranks.size(), {}};
  if (has_root(roles.collective))
    roles.root = static_cast<std::size_t>(std::find_if(call.ranks.begin(), call.ranks.end(),
                                                       [&](const RankInCall& one) { return one.rank == event.root; }) -
                                          call.ranks.begin());
  if (need_of(roles.collective) == Need::lower_ranks) {
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
