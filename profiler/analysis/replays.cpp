#include "profiler/analysis/replays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "profiler/analysis/archive.hpp"
#include "profiler/analysis/usage.hpp"
#include "profiler/read/units.hpp"

namespace papaya::report {
namespace {

// Empty: it can be told.
std::string why_no_what_if(const Run& run, const Analysis& analysis) {
  if (run.files.size() < 2) return "The job has one rank.";
  if (!analysis.finalized || !run.missing.empty() ||
      std::any_of(run.files.begin(), run.files.end(), [](const RankFile& file) { return !file.gaps.empty(); }))
    return "The record does not have all calls of the run.";
  if (analysis.crowded_ranks == 0) return {};
  const RankFigures* most = nullptr;
  for (const RankFigures& rank : analysis.late_ranks) {
    if (!rank.usage.knows_core_wait)
      return fmt::format("{} ranks share {} cores, and how long they were ready without one is not known.",
                         analysis.crowded_ranks, analysis.crowded_cores);
    if (most == nullptr || rank.usage.core_wait_share > most->usage.core_wait_share) most = &rank;
  }
  if (most == nullptr || most->usage.core_wait_share <= least_core_wait_share) return {};
  return fmt::format(
      "{} ranks share {} cores, and rank {} was ready to run but had none for {} of its time: when a rank waits, "
      "another one computes quicker.",
      analysis.crowded_ranks, analysis.crowded_cores, most->rank, share_text(most->usage.core_wait_share));
}

// Those with most waiting.
std::vector<std::size_t> sites_to_come_quicker_to(const Analysis& analysis) {
  std::vector<std::size_t> numbers;
  for (const CallSiteFigures& site : analysis.call_sites)
    if (site.waiting_ns > 0 && numbers.size() < WhatIfReplay::most_sites) numbers.push_back(site.number);
  return numbers;
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

Replays::Replays(const Run& run, const Clocks& clocks, std::span<const EventFacts> facts, const CallSums& sums,
                 const Analysis& analysis)
    : run_(run),
      clocks_(clocks),
      sites_(sums.sites),
      alpha_(run.files),
      meanwhile_(run, clocks, analysis),
      model_(std::make_unique<ExitModel>(run)),
      savings_(run, clocks, facts, sites_to_replay(sums.sites), sums.replayed_parts, *model_),
      why_no_what_if_(why_no_what_if(run, analysis)) {
  for (const Sites::Site& site : sums.sites.all()) patterns_.emplace_back(site.means);
  if (why_no_what_if_.empty())
    what_if_.emplace(
        run, clocks, facts,
        WhatIfReplay::Choice{ranks_to_quicken(run, analysis), sites_to_come_quicker_to(analysis), sums.replayed_parts},
        sums.relief.relieved());
}

void Replays::add(const GroupCall& call) {
  if (!call.is_compared()) return;
  const Sites::Site* const site = sites_.find(call.sightings.front().file, call.sightings.front());
  all_sites_.clear();
  for (const Sighting& sighting : call.sightings)
    if (const Sites::Site* const own = sites_.find(sighting.file, sighting);
        own != nullptr && std::find(all_sites_.begin(), all_sites_.end(), own) == all_sites_.end())
      all_sites_.push_back(own);
  if (!all_sites_.empty()) {
    arrivals_.take_waits(run_, call);
    const CallOfSite of_site = call_of_site(run_, clocks_, call, arrivals_, alpha_);
    for (const Sites::Site* const one : all_sites_) patterns_[one->figures.number].add(of_site);
  }
  const std::size_t number = site == nullptr ? ComparedCall::no_site : site->figures.number;
  const bool is_modelled = call.match == Match::complete && model_->take(call);
  if (is_modelled) savings_.add(number);
  if (what_if_) what_if_->add(call, number, is_modelled ? model_.get() : nullptr);
}

void Replays::end_part(std::span<const EventFacts> facts) {
  savings_.end_part(clocks_, facts);
  if (what_if_) what_if_->end_part(clocks_, facts);
}

void Replays::merge(Replays&& next) {
  for (std::size_t s = 0; s < patterns_.size(); ++s) patterns_[s].merge(next.patterns_[s]);
  meanwhile_.merge(next.meanwhile_);
  savings_.merge(next.savings_);
  if (what_if_) what_if_->merge(*next.what_if_);
}

// What each process makes of the figures of all calls is the same.
void Replays::pack(Archive& archive) {
  for (PatternFinder& pattern : patterns_) archive(pattern);
  archive(meanwhile_, savings_);
  if (what_if_) archive(*what_if_);
}

void Replays::write(Analysis& analysis) const {
  for (CallSiteFigures& site : analysis.call_sites) site.pattern = patterns_[site.number].take();
  meanwhile_.write(analysis.costly_calls);
  savings_.write(analysis);
  if (what_if_)
    analysis.what_if = what_if_->result();
  else
    analysis.what_if.why_unknown = why_no_what_if_;
}

}  // namespace papaya::report
