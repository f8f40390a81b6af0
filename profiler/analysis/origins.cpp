#include "profiler/analysis/origins.hpp"

#include <algorithm>

namespace papaya::report {

Origins::Origins(const Run& run, const Computing& computing)
    : run_(run), computing_(computing), blames_(run.files.size()) {}

// Of the call that ended its longest time of computing.
std::uint32_t Origins::site_of(std::uint32_t file, std::uint32_t since, std::uint32_t event) const {
  double most_ns = -1;
  std::uint32_t longest = event;
  for (std::uint32_t e = since; e <= event; ++e) {
    const double own_ns = computing_.ns(file, e, e);
    if (own_ns <= most_ns) continue;
    most_ns = own_ns;
    longest = e;
  }
  const trace::Event& reached = run_.files[file].events[longest];
  const trace::Interval* const interval = interval_of(run_.files[file], reached);
  return interval != nullptr && interval->longest_site != 0 ? interval->longest_site : reached.call_site;
}

void Origins::add(const GroupCall& call, const Arrivals& arrivals) {
  if (group_ != call.group) {
    group_ = call.group;
    since_.assign(call.group->members.size(), 0);
  }
  const std::size_t size = arrivals.size();
  excess_ns_.resize(size);
  for (std::size_t i = 0; i < size; ++i)
    excess_ns_[i] = computing_.ns(arrivals.files[i], since_[call.sightings[i].member], call.sightings[i].event);
  sorted_ = excess_ns_;
  const double median_computed_ns = lower_median(sorted_);
  for (double& excess : excess_ns_) excess -= median_computed_ns;
  sorted_.assign(arrivals.arrivals_ns.begin(), arrivals.arrivals_ns.end());
  const double median_arrival_ns = lower_median(sorted_);
  const auto most =
      static_cast<std::size_t>(std::max_element(excess_ns_.begin(), excess_ns_.end()) - excess_ns_.begin());
  for (std::size_t i = 0; i < size; ++i) {
    if (arrivals.waiters[i] == 0) continue;
    Blame& blame = blames_[arrivals.files[i]];
    double delay_ns = arrivals.arrivals_ns[i] - median_arrival_ns;
    if (delay_ns <= 0) delay_ns = arrivals.longest_ns[i];
    std::size_t origin = i;
    if (excess_ns_[i] >= enough_evidence * delay_ns) {
      blame.own_ns += arrivals.caused_ns[i];
    } else if (excess_ns_[most] >= enough_evidence * delay_ns) {
      origin = most;
      blame.from_ns[arrivals.files[most]] += arrivals.caused_ns[i];
    } else {
      blame.unknown_ns += arrivals.caused_ns[i];
      continue;
    }
    const Sighting& sighting = call.sightings[origin];
    blames_[arrivals.files[origin]]
        .sites_ns[site_of(arrivals.files[origin], since_[sighting.member], sighting.event)] += arrivals.caused_ns[i];
  }
  for (std::size_t i = 0; i < size; ++i) since_[call.sightings[i].member] = call.sightings[i].event + 1;
}

void Origins::write(std::vector<RankFigures>& ranks) const {
  for (std::size_t i = 0; i < blames_.size(); ++i) {
    RankFigures& rank = ranks[i];
    rank.began_ns += blames_[i].own_ns;
    rank.unknown_origin_ns = blames_[i].unknown_ns;
    for (const auto& [from, ns] : blames_[i].from_ns) {
      rank.passed_on_ns += ns;
      ranks[from].began_ns += ns;
      if (ns <= rank.most_passed_on_ns) continue;
      rank.most_passed_on_ns = ns;
      rank.passed_on_from = run_.files[from].header.rank;
    }
    double sum_ns = 0;
    std::pair<std::uint32_t, double> most{0, 0.0};
    for (const auto& [site, ns] : blames_[i].sites_ns) {
      sum_ns += ns;
      if (ns > most.second) most = {site, ns};
    }
    if (most.second >= enough_evidence * sum_ns) rank.late_at = frames_of(run_.files[i], most.first);
  }
}

}  // namespace papaya::report
