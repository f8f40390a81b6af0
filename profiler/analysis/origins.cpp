#include "profiler/analysis/origins.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "profiler/analysis/archive.hpp"
#include "profiler/analysis/computing.hpp"
#include "profiler/record/waits.hpp"

namespace papaya::report {

namespace {

constexpr std::size_t no_file = ~std::size_t{0};
constexpr std::ptrdiff_t most_origins = 32;  // that are told apart for a rank that is late

}  // namespace

Origins::Origins(const Run& run)
    : run_(run), waits_(run), blames_(run.files.size()), places_(run.files.size()), searches_(run.files.size()) {
  for (std::size_t f = 0; f < run.files.size(); ++f) {
    const auto rank = static_cast<std::size_t>(std::max(0, run.files[f].header.rank));
    if (rank >= files_.size()) files_.resize(rank + 1, no_file);
    files_[rank] = f;
  }
}

std::size_t Origins::sender_for(const GroupCall& call, const Arrivals& arrivals, std::size_t late, double delay_ns) {
  ++search_;
  for (std::size_t at = late;;) {
    // Neighbours wait for each other: who was come by before leads to nobody else.
    if (std::exchange(searches_[arrivals.files[at]], search_) == search_) return late;
    const auto rank = static_cast<std::size_t>(call.sightings[at].waited_for);
    if (call.sightings[at].waited_for < 0 || rank >= files_.size() || files_[rank] == no_file) return late;
    at = places_[files_[rank]];
    if (at >= arrivals.size() || arrivals.files[at] != files_[rank]) return late;
    if (excess_ns_[at] >= enough_evidence * delay_ns) return at;
  }
}

const Origins::Brought* Origins::brought_to(const GroupCall& call, std::size_t i) const {
  const auto found = brought_.find(call.group_number);
  return found == brought_.end() ? nullptr : &found->second[call.sightings[i].member];
}

void Origins::begin_at(const GroupCall& call, std::size_t origin) {
  const Sighting& sighting = call.sightings[origin];
  const Brought* const brought = brought_to(call, origin);
  double own = 1;  // part of its excess, what it has computed first
  if (brought != nullptr && brought->inherited_ns > 0 && excess_ns_[origin] > 0) {
    own = std::min(1.0, (brought->own_ns + sighting.computed_ns) / excess_ns_[origin]);
    if (own >= enough_evidence) own = 1;
    if (own <= 1 - enough_evidence) own = 0;
    for (const Beginning& one : brought->from)
      if (own < 1) beginnings_.push_back({one.file, one.site, (1 - own) * one.ns});
  }
  const bool is_before = brought != nullptr && brought->longest_ns > sighting.computed_ns;
  if (own > 0) beginnings_.push_back({sighting.file, is_before ? brought->site : sighting.longest_site, own});
}

bool Origins::divide(const GroupCall& call, std::size_t late, double delay_ns) {
  if (!call.is_computing_known) return false;
  sorted_.clear();
  for (const Sighting& sighting : call.sightings) {
    found_.clear();
    if (!waits_.since_call_before(sighting, found_)) return false;
    double waited_ns = 0;
    for (const Beginning& wait : found_) waited_ns += wait.ns;
    sorted_.push_back(waited_ns);
  }
  const double waited_ns = sorted_[late];
  const double more_ns = waited_ns - lower_median(sorted_);
  const double own_ns = std::max(0.0, excess_ns_[late]);
  if (more_ns <= 0 || own_ns + more_ns < enough_evidence * delay_ns) return false;
  found_.clear();
  waits_.since_call_before(call.sightings[late], found_);
  double known_ns = own_ns;
  for (Beginning& wait : found_) {
    wait.ns *= more_ns / waited_ns;
    if (wait.file != Beginning::nobody) known_ns += wait.ns;
  }
  if (known_ns < enough_evidence * delay_ns) return false;
  // One that explains the delay alone began it.
  for (const Beginning& wait : found_)
    if (wait.file != Beginning::nobody && wait.ns >= enough_evidence * delay_ns) {
      beginnings_.push_back({wait.file, wait.site, 1});
      return true;
    }
  if (own_ns > 0) {
    const std::size_t first = beginnings_.size();
    begin_at(call, late);
    for (std::size_t b = first; b < beginnings_.size(); ++b) beginnings_[b].ns *= own_ns / known_ns;
  }
  for (const Beginning& wait : found_)
    if (wait.file != Beginning::nobody) beginnings_.push_back({wait.file, wait.site, wait.ns / known_ns});
  return true;
}

void Origins::find_beginnings(const GroupCall& call, const Arrivals& arrivals, std::size_t late, double delay_ns,
                              bool is_left) {
  if (excess_ns_[late] >= enough_evidence * delay_ns) return begin_at(call, late);
  const std::size_t sender = sender_for(call, arrivals, late, delay_ns);
  if (sender != late) return begin_at(call, sender);
  if (!is_left && divide(call, late, delay_ns)) return;
  const auto most =
      static_cast<std::size_t>(std::max_element(excess_ns_.begin(), excess_ns_.end()) - excess_ns_.begin());
  if (excess_ns_[most] >= enough_evidence * delay_ns) begin_at(call, most);
}

void Origins::add_from(Blame& blame, std::uint32_t file, double ns) {
  auto& from = blame.from_ns;
  const auto found = std::find_if(from.begin(), from.end(), [&](const auto& one) { return one.first == file; });
  if (found != from.end()) {
    found->second += ns;
    return;
  }
  if (std::ssize(from) == most_origins) {
    const auto middle = from.begin() + most_origins / 2;
    std::nth_element(from.begin(), middle, from.end(),
                     [](const auto& one, const auto& other) { return one.second > other.second; });
    from.erase(middle, from.end());
  }
  from.emplace_back(file, ns);
}

void Origins::blame(std::uint32_t late_file, double caused_ns, std::size_t first_beginning) {
  Blame& late = blames_[late_file];
  if (first_beginning == beginnings_.size()) late.unknown_ns += caused_ns;
  for (std::size_t b = first_beginning; b < beginnings_.size(); ++b) {
    const Beginning& beginning = beginnings_[b];
    const double ns = caused_ns * beginning.ns;
    if (beginning.file == late_file) {
      late.own_ns += ns;
    } else {
      late.passed_on_ns += ns;
      blames_[beginning.file].for_others_ns += ns;
      add_from(late, beginning.file, ns);
    }
    blames_[beginning.file].sites_ns[beginning.site] += ns;
  }
}

// To the ranks' next calls.
void Origins::carry_on(const GroupCall& call, const Arrivals& arrivals) {
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const Sighting& sighting = call.sightings[i];
    waits_.come_to(call, sighting);
    const double wait_ns = arrivals.waits_ns[i];
    if (wait_ns <= tie_ns) continue;
    const std::size_t culprit = arrivals.culprits[i];
    const std::size_t end = begins_at_[culprit + 1];
    if (begins_at_[culprit] == end) waits_.add(sighting, {Beginning::nobody, 0, wait_ns});
    for (std::size_t b = begins_at_[culprit]; b < end; ++b)
      waits_.add(sighting, {beginnings_[b].file, beginnings_[b].site, beginnings_[b].ns * wait_ns});
  }
}

// What the ranks bring to the communicator's next call.
void Origins::bring_on(const GroupCall& call, const Arrivals& arrivals) {
  const std::size_t size = arrivals.size();
  // How late somebody was whom a rank waited for has to be explained.
  bool is_known = need_of(arrivals.collective) != Need::all && call.is_computing_known;
  for (std::size_t i = 0; i < size && is_known; ++i)
    is_known =
        arrivals.waits_ns[i] <= tie_ns || begins_at_[arrivals.culprits[i]] != begins_at_[arrivals.culprits[i] + 1];
  if (!is_known) {
    brought_.erase(call.group_number);
    return;
  }
  std::vector<Brought>& all = brought_[call.group_number];
  all.resize(call.group->members.size());
  sorted_.resize(size);  // before any of them changes
  for (std::size_t i = 0; i < size; ++i)
    sorted_[i] = all[call.sightings[i].member].ns() + call.sightings[i].computed_ns;
  for (std::size_t i = 0; i < size; ++i) {
    const Sighting& sighting = call.sightings[i];
    Brought& own = all[sighting.member];
    if (arrivals.waits_ns[i] <= tie_ns) {
      own.own_ns += sighting.computed_ns;
      if (sighting.computed_ns <= own.longest_ns) continue;
      own.longest_ns = sighting.computed_ns;
      own.site = sighting.longest_site;
      continue;
    }
    const std::size_t culprit = arrivals.culprits[i];
    own.own_ns = own.longest_ns = 0;
    own.inherited_ns = sorted_[culprit];
    own.from.assign(beginnings_.begin() + static_cast<std::ptrdiff_t>(begins_at_[culprit]),
                    beginnings_.begin() + static_cast<std::ptrdiff_t>(begins_at_[culprit + 1]));
  }
}

void Origins::find_excess(const GroupCall& call, const Arrivals& arrivals) {
  const std::size_t size = arrivals.size();
  excess_ns_.resize(size);
  const bool has_brought = brought_.contains(call.group_number);
  sorted_.clear();
  for (std::size_t i = 0; i < size; ++i) {
    const Sighting& sighting = call.sightings[i];
    places_[arrivals.files[i]] = i;
    excess_ns_[i] = sighting.computed_ns - arrivals.median_computed_ns;
    std::vector<double>& by_site = blames_[sighting.file].excess_ns;
    if (by_site.size() <= sighting.longest_site) by_site.resize(sighting.longest_site + 1);
    by_site[sighting.longest_site] += excess_ns_[i];
    if (has_brought) sorted_.push_back(brought_to(call, i)->ns());
  }
  if (!has_brought) return;
  const double median_ns = lower_median(sorted_);
  const double first_ns = *std::min_element(arrivals.arrivals_ns.begin(), arrivals.arrivals_ns.end());
  // As far as the rank is late by it still: the others may have waited for that in messages.
  for (std::size_t i = 0; i < size; ++i)
    excess_ns_[i] += std::clamp(brought_to(call, i)->ns() - median_ns, 0.0, arrivals.arrivals_ns[i] - first_ns);
}

void Origins::add(const GroupCall& call, const Arrivals& arrivals, bool is_left) {
  const std::size_t size = arrivals.size();
  if (is_left) brought_.erase(call.group_number);
  sorted_.assign(arrivals.arrivals_ns.begin(), arrivals.arrivals_ns.end());
  const double median_arrival_ns = lower_median(sorted_);
  find_excess(call, arrivals);
  for (const Sighting& sighting : call.sightings)
    if (sighting.just_waited_for >= 0)
      blames_[sighting.file].waited_ns[sighting.just_waited_for] += sighting.just_waited_ns;
  beginnings_.clear();
  begins_at_.assign(1, 0);
  for (std::size_t i = 0; i < size; ++i) {
    if (arrivals.waiters[i] > 0) {
      double delay_ns = arrivals.arrivals_ns[i] - median_arrival_ns;
      if (delay_ns <= 0) delay_ns = arrivals.longest_ns[i];
      find_beginnings(call, arrivals, i, delay_ns, is_left);
      blame(arrivals.files[i], arrivals.caused_ns[i], begins_at_.back());
    }
    begins_at_.push_back(beginnings_.size());
  }
  if (is_left) return;
  carry_on(call, arrivals);
  bring_on(call, arrivals);
}

void Origins::merge(const Origins& next) {
  for (std::size_t f = 0; f < blames_.size(); ++f) {
    Blame& own = blames_[f];
    const Blame& other = next.blames_[f];
    own.own_ns += other.own_ns;
    own.unknown_ns += other.unknown_ns;
    own.passed_on_ns += other.passed_on_ns;
    own.for_others_ns += other.for_others_ns;
    for (const auto& [from, ns] : other.from_ns) add_from(own, from, ns);
    for (const auto& [rank, ns] : other.waited_ns) own.waited_ns[rank] += ns;
    for (const auto& [site, ns] : other.sites_ns) own.sites_ns[site] += ns;
    own.excess_ns.resize(std::max(own.excess_ns.size(), other.excess_ns.size()));
    for (std::size_t site = 0; site < other.excess_ns.size(); ++site) own.excess_ns[site] += other.excess_ns[site];
  }
}

void Origins::Blame::pack(Archive& archive) {
  archive(own_ns, unknown_ns, passed_on_ns, for_others_ns, from_ns, waited_ns, sites_ns, excess_ns);
}

void Origins::pack(Archive& archive) {
  archive(blames_);
}

void Origins::write(std::vector<RankFigures>& ranks) const {
  for (std::size_t i = 0; i < blames_.size(); ++i) {
    RankFigures& rank = ranks[i];
    rank.began_ns = blames_[i].own_ns + blames_[i].for_others_ns;
    rank.passed_on_ns = blames_[i].passed_on_ns;
    rank.unknown_origin_ns = blames_[i].unknown_ns;
    for (const auto& [from, ns] : blames_[i].from_ns) {
      if (ns <= rank.most_passed_on_ns) continue;
      rank.most_passed_on_ns = ns;
      rank.passed_on_from = run_.files[from].header.rank;
    }
    for (const auto& [of, ns] : blames_[i].waited_ns) {
      if (ns <= rank.most_waited_ns) continue;
      rank.most_waited_ns = ns;
      rank.most_waited_for = of;
    }
    double sum_ns = 0;
    std::pair<std::uint32_t, double> most{0, 0.0};
    for (const auto& [site, ns] : blames_[i].sites_ns) {
      sum_ns += ns;
      if (ns > most.second) most = {site, ns};
    }
    if (most.second >= enough_evidence * sum_ns) rank.late_at = frames_of(run_.files[i], most.first);
    const std::vector<double>& excess = blames_[i].excess_ns;
    const auto longest = std::max_element(excess.begin(), excess.end());
    if (longest == excess.end() || *longest <= 0) continue;
    rank.long_ns = std::accumulate(excess.begin(), excess.end(), 0.0);
    rank.long_there_ns = *longest;
    rank.long_at = frames_of(run_.files[i], static_cast<std::uint32_t>(longest - excess.begin()));
  }
}

}  // namespace papaya::report
