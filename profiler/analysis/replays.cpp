#include "profiler/analysis/replays.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace papaya::report {
namespace {

// All calls of the run are at hand.
bool can_tell_what_if(const Run& run, const Analysis& analysis) {
  return run.files.size() >= 2 && analysis.finalized && run.missing.empty() &&
         std::all_of(run.files.begin(), run.files.end(), [](const RankFile& file) { return file.gaps.empty(); });
}

// Those that most waiting begins with, or else those that the others wait for at the end.
std::vector<std::size_t> ranks_to_quicken(const Run& run, const Analysis& analysis) {
  std::map<std::int32_t, std::size_t> files;
  for (std::size_t f = 0; f < run.files.size(); ++f) files.emplace(run.files[f].header.rank, f);
  std::vector<const RankFigures*> by_began;
  for (const RankFigures& rank : analysis.late_ranks) by_began.push_back(&rank);
  const auto weight = [](const RankFigures& rank) { return std::pair(rank.began_ns, -rank.time.finalize_ns); };
  std::stable_sort(by_began.begin(), by_began.end(),
                   [&](const auto* a, const auto* b) { return weight(*a) > weight(*b); });
  by_began.resize(std::min(by_began.size(), WhatIfReplay::most_ranks));
  std::vector<std::size_t> chosen;
  for (const RankFigures* rank : by_began) chosen.push_back(files.at(rank->rank));
  return chosen;
}

// Most excess first.
std::vector<std::size_t> sites_to_replay(const Sites& sites) {
  std::vector<std::size_t> numbers;
  for (std::size_t s = 0; s < sites.all().size(); ++s)
    if (sites.all()[s].means.calls > 0) numbers.push_back(s);
  std::stable_sort(numbers.begin(), numbers.end(), [&](std::size_t a, std::size_t b) {
    return sites.all()[a].replayed_excess_ns > sites.all()[b].replayed_excess_ns;
  });
  return numbers;
}

}  // namespace

Replays::Replays(const Run& run, const Clocks& clocks, std::span<const EventFacts> facts, const Sites& sites,
                 std::uint64_t parts, const Analysis& analysis)
    : savings_(run, clocks, facts, sites_to_replay(sites), parts) {
  for (const Sites::Site& site : sites.all()) patterns_.emplace_back(site.means);
  if (can_tell_what_if(run, analysis)) what_if_.emplace(run, clocks, facts, ranks_to_quicken(run, analysis));
}

void Replays::add(const GroupCall& call, const Sites::Site* site) {
  savings_.add(call, site == nullptr ? ComparedCall::no_site : site->figures.number);
  if (what_if_) what_if_->add(call);
}

void Replays::write(Analysis& analysis) const {
  for (CallSiteFigures& site : analysis.call_sites) site.pattern = patterns_[site.number].take();
  savings_.write(analysis);
  if (what_if_) analysis.what_if = what_if_->result();
}

}  // namespace papaya::report
