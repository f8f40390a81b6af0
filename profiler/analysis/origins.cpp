#include "profiler/analysis/origins.hpp"

#include <algorithm>
#include <numeric>

#include "profiler/analysis/computing.hpp"

namespace papaya::report {

Origins::Origins(const Run& run) : run_(run), blames_(run.files.size()) {}

std::size_t Origins::sender_for(const GroupCall& call, const Arrivals& arrivals, std::size_t late,
                                double delay_ns) const {
  std::size_t at = late;
  for (std::size_t hops = 0; hops < arrivals.size(); ++hops) {
    const std::int32_t rank = call.sightings[at].waited_for;
    if (rank < 0) break;
    const auto sender = std::find_if(arrivals.files.begin(), arrivals.files.end(),
                                     [&](std::size_t file) { return run_.files[file].header.rank == rank; });
    if (sender == arrivals.files.end()) break;
    at = static_cast<std::size_t>(sender - arrivals.files.begin());
    if (excess_ns_[at] >= enough_evidence * delay_ns) return at;
  }
  return late;
}

void Origins::add(const GroupCall& call, const Arrivals& arrivals) {
  const std::size_t size = arrivals.size();
  excess_ns_.resize(size);
  for (std::size_t i = 0; i < size; ++i) {
    excess_ns_[i] = call.sightings[i].computed_ns - arrivals.median_computed_ns;
    std::vector<double>& by_site = blames_[call.sightings[i].file].excess_ns;
    const std::size_t site = call.sightings[i].longest_site;
    if (by_site.size() <= site) by_site.resize(site + 1);
    by_site[site] += excess_ns_[i];
  }
  sorted_.assign(arrivals.arrivals_ns.begin(), arrivals.arrivals_ns.end());
  const double median_arrival_ns = lower_median(sorted_);
  const auto most =
      static_cast<std::size_t>(std::max_element(excess_ns_.begin(), excess_ns_.end()) - excess_ns_.begin());
  for (const Sighting& sighting : call.sightings)
    if (sighting.just_waited_for >= 0)
      blames_[sighting.file].waited_ns[sighting.just_waited_for] += sighting.just_waited_ns;
  for (std::size_t i = 0; i < size; ++i) {
    if (arrivals.waiters[i] == 0) continue;
    Blame& blame = blames_[arrivals.files[i]];
    double delay_ns = arrivals.arrivals_ns[i] - median_arrival_ns;
    if (delay_ns <= 0) delay_ns = arrivals.longest_ns[i];
    std::size_t origin = i;
    if (excess_ns_[i] < enough_evidence * delay_ns) {
      origin = sender_for(call, arrivals, i, delay_ns);
      if (origin == i && excess_ns_[most] >= enough_evidence * delay_ns) origin = most;
      if (origin == i) {
        blame.unknown_ns += arrivals.caused_ns[i];
        continue;
      }
      blame.from_ns[arrivals.files[origin]] += arrivals.caused_ns[i];
    } else {
      blame.own_ns += arrivals.caused_ns[i];
    }
    blames_[arrivals.files[origin]].sites_ns[call.sightings[origin].longest_site] += arrivals.caused_ns[i];
  }
}

void Origins::merge(const Origins& next) {
  for (std::size_t f = 0; f < blames_.size(); ++f) {
    Blame& own = blames_[f];
    const Blame& other = next.blames_[f];
    own.own_ns += other.own_ns;
    own.unknown_ns += other.unknown_ns;
    for (const auto& [from, ns] : other.from_ns) own.from_ns[from] += ns;
    for (const auto& [rank, ns] : other.waited_ns) own.waited_ns[rank] += ns;
    for (const auto& [site, ns] : other.sites_ns) own.sites_ns[site] += ns;
    own.excess_ns.resize(std::max(own.excess_ns.size(), other.excess_ns.size()));
    for (std::size_t site = 0; site < other.excess_ns.size(); ++site) own.excess_ns[site] += other.excess_ns[site];
  }
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
