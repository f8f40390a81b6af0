// What the calls of a run say when they are read again, once the figures of all of them are known: what pattern those
// of each call site have, what late ranks did while the others waited, and how the run would have gone otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/event_facts.hpp"
#include "profiler/analysis/exit_model.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/analysis/meanwhile.hpp"
#include "profiler/analysis/relief.hpp"
#include "profiler/analysis/sites.hpp"
#include "profiler/read/clocks.hpp"

namespace papaya::report {

class Replays {
 public:
  // `facts` by file; `parts`: ranks in calls that can be replayed; `analysis` has the figures.
  Replays(const Run& run, const Clocks& clocks, std::span<const EventFacts> facts, const Sites& sites,
          std::uint64_t parts, const Relief& relief, const Analysis& analysis);

  // A compared call, in the order of CallStream, and the site of its lowest rank, null if that is not known.
  void add(const GroupCall& call, const Sites::Site* site);
  void add_event(std::size_t file, const trace::Event& event) { meanwhile_.add(file, event); }
  void add_to_pattern(const Sites::Site& site, const CallOfSite& call) { patterns_[site.figures.number].add(call); }

  void write(Analysis& analysis) const;

 private:
  Meanwhile meanwhile_;
  std::vector<PatternFinder> patterns_;  // by number of the site
  ExitModel model_;
  SavingsReplay savings_;
  std::string why_no_what_if_;
  std::optional<WhatIfReplay> what_if_;
};

}  // namespace papaya::report
