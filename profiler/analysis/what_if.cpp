#include "profiler/analysis/what_if.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/archive.hpp"
#include "profiler/analysis/computing.hpp"
#include "profiler/analysis/event_facts.hpp"
#include "profiler/analysis/exit_model.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/read/clocks.hpp"

namespace papaya::report {

namespace {

// A shorter time in a message need not be a wait: the message may have been there.
constexpr double least_wait_ns = 10e3;
// Of the time in messages and the like, for its end to be that of the longest wait.
constexpr double most_of_it = 0.5;
// Steps of replays, a rank in a call each, until cases are left out: about a second.
constexpr std::uint64_t most_steps = 100'000'000;

// A rank in the call that is being replayed.
struct Part {
  std::uint32_t file;
  std::uint32_t member;  // of the communicator
  std::size_t origin;    // place in the call of the rank that it waited for in messages; its own: for none
  bool is_sender_known;
  double waited_ns;  // for its origin, at most
  double excess_ns;  // computed longer than the median of the call's ranks
};

// What would be if certain ranks computed no longer than the median.
struct Case {
  static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
  std::size_t quick = all;           // file of the one rank
  std::size_t site = all;            // number of the one call site
  std::size_t candidate = all;       // in calls from there that are MPI's own: which algorithm; all: MPI's
  double parts_ns = 0;               // what the run gains in its parts before
  std::vector<double> saved_ns{};    // by file, when it left its last call
  std::vector<double> removed_ns{};  // by file, so far, of its computing
  std::vector<std::vector<double>> removed_before_ns{};  // the same by communicator and member, at its call before

  bool is_quick(std::size_t file) const { return quick == all || quick == file; }
  bool is_at(std::size_t place) const { return site == all || site == place; }
};

// The algorithms that serve the calls of one site, or of all.
using Names = std::array<std::vector<std::string>, most_candidates>;

}  // namespace

class WhatIfReplay::Replay {
 public:
  Replay(const Run& run, const Clocks& clocks, std::span<const EventFacts> facts, const Choice& choice,
         std::map<Section, Relieved> relieved);

  void add(const GroupCall& call, std::size_t site, ExitModel* model);
  void end_part(const Clocks& clocks, std::span<const EventFacts> facts);
  void merge(const Replay& next);
  void pack(Archive& archive);
  WhatIf result() const;

 private:
  void find_ends(const Clocks& clocks, std::span<const EventFacts> facts);
  void add_case(std::uint64_t parts, std::size_t quick, std::size_t site, std::size_t candidate);
  void take_names(const ReplayedCall& call, std::size_t site);
  void find_origins(const GroupCall& call);
  std::size_t sender_of(const Sighting& sighting) const;
  void sort_by_origin();
  void come_earlier(Case& one, const GroupCall& call, std::size_t site, double cost_share);
  void replay(Case& one, const Roles& roles, std::size_t site, ExitModel* model);
  double saved_ns(const Case& one) const;
  WhatIf::Served served(std::size_t site, double own_ns) const;

  const Run& run_;
  const std::map<Section, Relieved> relieved_;
  Sections sections_;
  std::vector<Case> cases_;
  std::map<std::size_t, Names> names_;  // by site
  std::vector<double> ends_ns_;         // by file
  std::vector<double> tail_excess_ns_;  // by file: after its last call
  std::vector<std::size_t> files_;      // by rank of the job
  std::vector<std::size_t> places_;     // by file, in the last call that it was in
  // Of one call.
  std::vector<Part> parts_;
  std::vector<std::size_t> order_;  // of parts: origins first; empty: nobody waited for another
  std::vector<bool> is_placed_;
  std::vector<double> earlier_ns_;
  std::vector<double> values_;
  std::vector<double> recorded_ns_;
  std::vector<double> arrivals_;
  std::vector<double> legal_;
  std::vector<double> exits_;
};

WhatIfReplay::Replay::Replay(const Run& run, const Clocks& clocks, std::span<const EventFacts> facts,
                             const Choice& choice, std::map<Section, Relieved> relieved)
    : run_(run), relieved_(std::move(relieved)), places_(run.files.size()) {
  find_ends(clocks, facts);
  for (std::size_t f = 0; f < run.files.size(); ++f) {
    const auto rank = static_cast<std::size_t>(std::max(0, run.files[f].header.rank));
    if (rank >= files_.size()) files_.resize(rank + 1, Case::all);
    files_[rank] = f;
  }
  add_case(choice.parts, Case::all, Case::all, Case::all);
  for (const std::size_t file : choice.ranks) add_case(choice.parts, file, Case::all, Case::all);
  for (const std::size_t site : choice.sites) add_case(choice.parts, Case::all, site, Case::all);
  for (std::size_t k = 0; k < most_candidates; ++k) add_case(choice.parts, Case::all, Case::all, k);
  for (const std::size_t site : choice.sites)
    for (std::size_t k = 0; k < most_candidates; ++k) add_case(choice.parts, Case::all, site, k);
}

void WhatIfReplay::Replay::find_ends(const Clocks& clocks, std::span<const EventFacts> facts) {
  std::vector<double> tails;
  for (std::size_t f = 0; f < run_.files.size(); ++f) {
    const RankFile& file = run_.files[f];
    const NodeClock& clock = clocks.of_file(f);
    const double last_ns = clock.ns(std::max(file.header.init_ticks, facts[f].last_ticks));
    const double end_ns = file.header.end_ticks == 0 ? last_ns : clock.ns(file.header.end_ticks);
    double timed_ns = -facts[f].timed_ns;
    for (const trace::TimedFunction& row : file.timed) timed_ns += static_cast<double>(row.ticks) * clock.ns_per_tick;
    ends_ns_.push_back(end_ns);
    tails.push_back(std::max(0.0, end_ns - last_ns - std::max(0.0, timed_ns)));
  }
  tail_excess_ns_ = tails;
  if (tails.empty()) return;
  const double median_ns = lower_median(tails);
  for (double& tail : tail_excess_ns_) tail = std::max(0.0, tail - median_ns);
}

void WhatIfReplay::Replay::add_case(std::uint64_t parts, std::size_t quick, std::size_t site, std::size_t candidate) {
  // The first ones at any price: all ranks, and single ones.
  if (cases_.size() > most_ranks && (cases_.size() + 1) * parts > most_steps) return;
  Case& one = cases_.emplace_back();
  one.quick = quick;
  one.site = site;
  one.candidate = candidate;
  one.saved_ns.resize(run_.files.size());
  one.removed_ns.resize(run_.files.size());
}

void WhatIfReplay::Replay::take_names(const ReplayedCall& call, std::size_t site) {
  for (Names* const names : {&names_[site], &names_[Case::all]})
    for (std::size_t k = 0; k < most_candidates; ++k) {
      std::vector<std::string>& own = (*names)[k];
      if (const std::string_view name = call.algorithm(k); std::find(own.begin(), own.end(), name) == own.end())
        own.emplace_back(name);
    }
}

void WhatIfReplay::Replay::add(const GroupCall& call, std::size_t site, ExitModel* model) {
  const std::size_t size = call.sightings.size();
  const Section section = sections_.before(call.group_number, site);
  const auto relieved = relieved_.find(section);
  values_.clear();
  for (const Sighting& sighting : call.sightings) values_.push_back(sighting.computed_ns);
  const double median_ns = lower_median(values_);
  parts_.clear();
  recorded_ns_.clear();
  for (const Sighting& sighting : call.sightings) {
    places_[sighting.file] = parts_.size();
    parts_.push_back({sighting.file, sighting.member, parts_.size(), false, 0, sighting.computed_ns - median_ns});
    recorded_ns_.push_back(sighting.arrival_ns);
  }
  find_origins(call);
  sort_by_origin();
  const Roles roles = roles_of(call);
  legal_.resize(size);
  exits_.resize(size);
  arrivals_.resize(size);
  earliest_exits(roles, recorded_ns_, legal_);
  if (model != nullptr && model->call().open) take_names(model->call(), site);
  for (Case& one : cases_) {
    come_earlier(one, call, site, relieved == relieved_.end() ? 1 : relieved->second.cost_share);
    replay(one, roles, site, model);
  }
}

// The place of the rank that it waited for most of its time in messages and the like; none: not known.
std::size_t WhatIfReplay::Replay::sender_of(const Sighting& sighting) const {
  const auto rank = static_cast<std::size_t>(sighting.waited_for);
  if (sighting.waited_for < 0 || sighting.waited_ns < std::max(least_wait_ns, most_of_it * sighting.timed_ns) ||
      rank >= files_.size() || files_[rank] == Case::all)
    return Case::all;
  const std::size_t place = places_[files_[rank]];
  return place < parts_.size() && parts_[place].file == files_[rank] ? place : Case::all;
}

void WhatIfReplay::Replay::find_origins(const GroupCall& call) {
  const auto most = static_cast<std::size_t>(
      std::max_element(parts_.begin(), parts_.end(),
                       [](const Part& a, const Part& b) { return a.excess_ns < b.excess_ns; }) -
      parts_.begin());
  const double excess_ns = parts_[most].excess_ns;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Sighting& sighting = call.sightings[i];
    if (const std::size_t sender = sender_of(sighting); sender != Case::all) {
      parts_[i].origin = sender;
      parts_[i].is_sender_known = true;
      parts_[i].waited_ns = sighting.waited_ns;
    } else if (i != most && excess_ns > 0 && sighting.timed_ns >= enough_evidence * excess_ns) {
      parts_[i].origin = most;
      parts_[i].waited_ns = std::min(excess_ns, sighting.timed_ns);
    }
  }
}

// A circle of ranks that wait for each other is cut at the one that computed longest.
void WhatIfReplay::Replay::sort_by_origin() {
  order_.clear();
  if (std::all_of(parts_.begin(), parts_.end(), [&](const Part& part) { return &parts_[part.origin] == &part; }))
    return;
  is_placed_.assign(parts_.size(), false);
  std::vector<bool> is_on_way(parts_.size());
  std::vector<std::size_t> way;
  for (std::size_t start = 0; start < parts_.size(); ++start) {
    way.clear();
    std::size_t at = start;
    while (!is_placed_[at] && !is_on_way[at]) {
      way.push_back(at);
      is_on_way[at] = true;
      if (parts_[at].origin == at) break;
      at = parts_[at].origin;
    }
    if (!is_placed_[at] && parts_[at].origin != at) {
      const auto circle = std::find(way.begin(), way.end(), at);
      const std::size_t cut = *std::max_element(
          circle, way.end(), [&](std::size_t a, std::size_t b) { return parts_[a].excess_ns < parts_[b].excess_ns; });
      parts_[cut].origin = cut;
      // What led into the circle stands before the cut, what follows the cut in it comes after.
      std::rotate(circle, std::find(circle, way.end(), cut) + 1, way.end());
    }
    for (auto place = way.rbegin(); place != way.rend(); ++place) {
      order_.push_back(*place);
      is_placed_[*place] = true;
    }
  }
}

// Sets the arrivals of a case.
void WhatIfReplay::Replay::come_earlier(Case& one, const GroupCall& call, std::size_t site, double cost_share) {
  if (one.removed_before_ns.size() <= call.group_number) one.removed_before_ns.resize(call.group_number + 1);
  std::vector<double>& before_ns = one.removed_before_ns[call.group_number];
  if (before_ns.empty()) before_ns.resize(call.group->members.size());
  earlier_ns_.resize(parts_.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    earlier_ns_[i] = 0;
    if (one.is_quick(part.file) && one.is_at(site)) {
      double& removed_ns = one.removed_ns[part.file];
      const double extra = std::max(0.0, part.excess_ns - (removed_ns - before_ns[part.member]));
      removed_ns += extra;
      earlier_ns_[i] = cost_share * extra;
    }
    before_ns[part.member] = one.removed_ns[part.file];
  }
  // With what was saved before, and in messages.
  const auto add_saved = [&](std::size_t i) {
    const Part& part = parts_[i];
    const double saved_ns = one.saved_ns[part.file];
    if (part.origin == i)
      earlier_ns_[i] += saved_ns;
    else if (part.is_sender_known)
      earlier_ns_[i] += std::min(part.waited_ns + saved_ns, earlier_ns_[part.origin]);
    else
      earlier_ns_[i] +=
          saved_ns + std::clamp(earlier_ns_[part.origin] - one.saved_ns[parts_[part.origin].file], 0.0, part.waited_ns);
  };
  if (order_.empty())
    for (std::size_t i = 0; i < parts_.size(); ++i) add_saved(i);
  else
    for (const std::size_t i : order_) add_saved(i);
  for (std::size_t i = 0; i < parts_.size(); ++i) arrivals_[i] = recorded_ns_[i] - earlier_ns_[i];
}

void WhatIfReplay::Replay::replay(Case& one, const Roles& roles, std::size_t site, ExitModel* model) {
  if (one.candidate != Case::all && one.is_at(site) && model != nullptr && model->call().open) {
    model->exits(model->call().way_with(one.candidate), arrivals_, exits_);
    for (std::size_t i = 0; i < parts_.size(); ++i)
      one.saved_ns[parts_[i].file] = model->call().exits_ns[i] - exits_[i];
    return;
  }
  earliest_exits(roles, arrivals_, exits_);
  for (std::size_t i = 0; i < parts_.size(); ++i) one.saved_ns[parts_[i].file] = legal_[i] - exits_[i];
}

double WhatIfReplay::Replay::saved_ns(const Case& one) const {
  double end_ns = std::numeric_limits<double>::lowest();
  double new_end_ns = end_ns;
  for (std::size_t f = 0; f < ends_ns_.size(); ++f) {
    const double tail_ns = one.is_quick(f) && one.site == Case::all ? tail_excess_ns_[f] : 0.0;
    end_ns = std::max(end_ns, ends_ns_[f]);
    new_end_ns = std::max(new_end_ns, ends_ns_[f] - one.saved_ns[f] - tail_ns);
  }
  return one.parts_ns + std::max(0.0, end_ns - new_end_ns);
}

void WhatIfReplay::Replay::end_part(const Clocks& clocks, std::span<const EventFacts> facts) {
  for (std::size_t f = 0; f < facts.size(); ++f) ends_ns_[f] = clocks.of_file(f).ns(facts[f].last_ticks);
  std::fill(tail_excess_ns_.begin(), tail_excess_ns_.end(), 0.0);
}

void WhatIfReplay::Replay::merge(const Replay& next) {
  std::fill(tail_excess_ns_.begin(), tail_excess_ns_.end(), 0.0);  // it is in the last part
  for (std::size_t c = 0; c < cases_.size(); ++c) cases_[c].parts_ns += next.saved_ns(next.cases_[c]);
  for (const auto& [site, names] : next.names_)
    for (std::size_t k = 0; k < most_candidates; ++k)
      for (const std::string& name : names[k])
        if (std::vector<std::string>& own = names_[site][k]; std::find(own.begin(), own.end(), name) == own.end())
          own.push_back(name);
}

// Of merged parts.
void WhatIfReplay::Replay::pack(Archive& archive) {
  archive(names_);
  for (Case& one : cases_) archive(one.parts_ns);
  if (!archive.is_filled()) std::fill(tail_excess_ns_.begin(), tail_excess_ns_.end(), 0.0);  // it is in parts_ns
}

// `own_ns`: what is saved if the calls stay MPI's.
WhatIf::Served WhatIfReplay::Replay::served(std::size_t site, double own_ns) const {
  WhatIf::Served best{own_ns, {}};
  const auto names = names_.find(site);
  if (names == names_.end()) return best;
  for (const Case& one : cases_) {
    if (one.candidate == Case::all || one.site != site) continue;
    if (const double ns = saved_ns(one); ns > best.ns)
      best = {ns, fmt::format("{}", fmt::join(names->second[one.candidate], ", "))};
  }
  return best;
}

WhatIf WhatIfReplay::Replay::result() const {
  WhatIf out;
  out.is_known = true;
  for (const Case& one : cases_) {
    if (one.candidate != Case::all) continue;
    const double ns = saved_ns(one);
    if (one.site != Case::all) {
      const WhatIf::Served with = served(one.site, ns);
      if (ns > 0) out.sites.push_back({one.site, ns, with});
    } else if (one.quick == Case::all) {
      out.all_ns = ns;
      out.all_served = served(Case::all, ns);
    } else if (ns > 0) {
      out.ranks.push_back({run_.files[one.quick].header.rank, ns});
    }
  }
  const auto most_first = [](const auto& a, const auto& b) { return a.ns > b.ns; };
  std::stable_sort(out.ranks.begin(), out.ranks.end(), most_first);
  std::stable_sort(out.sites.begin(), out.sites.end(), most_first);
  const auto sum_ns = [](const Relieved& one) { return one.lateness_ns * static_cast<double>(one.late_calls); };
  std::map<std::size_t, Relieved> by_site;
  for (const auto& [section, one] : relieved_)
    if (Relieved& most = by_site[one.site]; sum_ns(one) > sum_ns(most)) most = one;
  for (const auto& [site, one] : by_site) out.relieved.push_back(one);
  std::stable_sort(out.relieved.begin(), out.relieved.end(),
                   [&](const Relieved& a, const Relieved& b) { return sum_ns(a) > sum_ns(b); });
  return out;
}

WhatIfReplay::WhatIfReplay(const Run& run, const Clocks& clocks, std::span<const EventFacts> facts,
                           const Choice& choice, std::map<Section, Relieved> relieved)
    : replay_(std::make_unique<Replay>(run, clocks, facts, choice, std::move(relieved))) {}
WhatIfReplay::~WhatIfReplay() = default;
WhatIfReplay::WhatIfReplay(WhatIfReplay&&) noexcept = default;

void WhatIfReplay::end_part(const Clocks& clocks, std::span<const EventFacts> facts) {
  replay_->end_part(clocks, facts);
}
void WhatIfReplay::merge(const WhatIfReplay& next) {
  replay_->merge(*next.replay_);
}
void WhatIfReplay::pack(Archive& archive) {
  replay_->pack(archive);
}
void WhatIfReplay::add(const GroupCall& call, std::size_t site, ExitModel* model) {
  replay_->add(call, site, model);
}
WhatIf WhatIfReplay::result() const {
  return replay_->result();
}

bool WhatIf::is_relief(std::int32_t rank, double least_ns) const {
  return std::any_of(relieved.begin(), relieved.end(),
                     [](const Relieved& one) { return one.cost_share < strong_relief; }) &&
         std::none_of(ranks.begin(), ranks.end(),
                      [&](const Rank& one) { return one.rank == rank && one.ns >= least_ns; });
}

}  // namespace papaya::report
