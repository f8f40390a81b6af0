#include "profiler/analysis/matching.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>

#include "base/mpi_name.hpp"
#include "profiler/analysis/archive.hpp"
#include "profiler/analysis/communicator_names.hpp"

namespace papaya::report {

Groups::Groups(const Run& run) : run_(run) {
  const std::map<std::uint64_t, std::string> names = communicator_names(run);
  for (std::size_t i = 0; i < run.files.size(); ++i) {
    for (const trace::Communicator& communicator : run.files[i].communicators) {
      const auto [at, is_new] = index_.try_emplace(communicator.id, groups_.size());
      if (is_new) {
        groups_.emplace_back();
        groups_.back().id = communicator.id;
        groups_.back().size = communicator.size;
        groups_.back().is_inter = static_cast<trace::Origin>(communicator.origin) == trace::Origin::inter;
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

const Group* Groups::find(std::uint64_t communicator) const {
  const auto found = index_.find(communicator);
  return found == index_.end() ? nullptr : &groups_[found->second];
}

void Groups::merge(const Groups& part) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    group.is_used = group.is_used || part.groups_[g].is_used;
    for (std::size_t m = 0; m < group.members.size(); ++m) {
      Member& member = group.members[m];
      const Member& other = part.groups_[g].members[m];
      member.first_kept_call = std::min(member.first_kept_call, other.first_kept_call);
      member.calls = std::max(member.calls, other.calls);
    }
  }
}

void Groups::pack(Archive& archive) {
  for (Group& group : groups_) {
    archive(group.is_used);
    for (Member& member : group.members) archive(member.calls, member.first_kept_call);
  }
}

bool Groups::judge(GroupCall& call) const {
  bool is_blocking = false;
  for (const Sighting& sighting : call.sightings) {
    const bool own = static_cast<Form>(sighting.form) == Form::blocking;
    is_blocking = is_blocking || own;
    call.is_inside = call.is_inside || (own && std::isnan(sighting.exit_ns));
  }
  if (!is_blocking) return false;
  call.conflict = conflict_in(call);
  call.match = match_of(call);
  return true;
}

// All ranks must have made the same call: other programs are erroneous, and it is worth telling where.
std::string Groups::conflict_in(const GroupCall& call) const {
  const Group& group = *call.group;
  const Sighting& first = call.sightings.front();
  const auto call_of = [](const Sighting& sighting) {
    // On inter-communicators roots may be MPI_ROOT and MPI_PROC_NULL, both negative.
    return std::tuple(sighting.collective, sighting.form,
                      has_root(static_cast<Collective>(sighting.collective)) ? std::max(sighting.root, -1) : -1);
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
    return fmt::format("rank {} called {}", run_.files[sighting.file].header.rank, name);
  };
  return fmt::format("at call {} on {}, {} and {}", call.call, group.name, text(first), text(*other));
}

Match Groups::match_of(const GroupCall& call) const {
  const Group& group = *call.group;
  const std::size_t seen = call.sightings.size();
  if (!call.conflict.empty()) return Match::conflicting;
  if (group.size < 2) return group.is_inter ? Match::two_groups : Match::alone;
  if (seen == static_cast<std::size_t>(group.size)) return group.is_inter ? Match::two_groups : Match::complete;
  // Ranks without a usable record cannot be there, and are not waited for.
  const std::uint64_t unknown = static_cast<std::uint64_t>(group.size) - group.members.size();
  if (seen == group.members.size() && seen >= 2 && unknown <= run_.missing_ranks + run_.unwanted_ranks)
    return group.is_inter ? Match::two_groups : Match::partial;
  const std::uint64_t number = call.call;
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

bool has_root(Collective collective) {
  const Need need = need_of(collective);
  return need == Need::root || need == Need::root_needs_all;
}

Roles roles_of(const GroupCall& call) {
  const Sighting& first = call.sightings.front();
  Roles roles{static_cast<Collective>(first.collective), call.sightings.size(), {}};
  // The root may be a rank whose file is missing: then nothing is known of that waiting.
  if (has_root(roles.collective))
    for (std::size_t i = 0; i < call.sightings.size(); ++i)
      if (call.group->members[call.sightings[i].member].rank == first.root) roles.root = i;
  return roles;
}

double latest(std::span<const double> arrivals_ns) {
  constexpr std::size_t beside = 4;  // that do not wait for each other
  double last_ns[beside];
  std::fill(std::begin(last_ns), std::end(last_ns), std::numeric_limits<double>::lowest());
  std::size_t i = 0;
  for (; i + beside <= arrivals_ns.size(); i += beside)
    for (std::size_t k = 0; k < beside; ++k) last_ns[k] = std::max(last_ns[k], arrivals_ns[i + k]);
  for (; i < arrivals_ns.size(); ++i) last_ns[0] = std::max(last_ns[0], arrivals_ns[i]);
  return *std::max_element(std::begin(last_ns), std::end(last_ns));
}

void earliest_exits(const Roles& roles, std::span<const double> arrivals_ns, std::span<double> exits_ns) {
  if (need_of(roles.collective) == Need::all) {
    std::fill(exits_ns.begin(), exits_ns.end(), latest(arrivals_ns));
    return;
  }
  for_each_wait(
      roles, arrivals_ns.size(), [&](std::size_t i) { return arrivals_ns[i]; },
      [&](std::size_t i, std::size_t until) { exits_ns[i] = arrivals_ns[until]; });
}

}  // namespace papaya::report
