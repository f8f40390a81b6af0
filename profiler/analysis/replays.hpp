// What the calls of a run say when they are read again, once the figures of all of them are known: what pattern those
// of each call site have, what late ranks did while the others waited, and how the run would have gone otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "profiler/analysis/alpha.hpp"
#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/arrivals.hpp"
#include "profiler/analysis/call_sums.hpp"
#include "profiler/analysis/event_facts.hpp"
#include "profiler/analysis/exit_model.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/analysis/meanwhile.hpp"
#include "profiler/read/clocks.hpp"

namespace papaya::report {

class Archive;

class Replays {
 public:
  // `facts` by file; `sums` of all calls, which stay where they are; `analysis` has the figures.
  Replays(const Run& run, const Clocks& clocks, std::span<const EventFacts> facts, const CallSums& sums,
          const Analysis& analysis);

  // Each event; and each call in the order of CallStream.
  void add(const GroupCall& call);
  void add(std::size_t file, const trace::Event& event) { meanwhile_.add(file, event); }
  // That was all of a part which is not the run's last, `facts` of it by file.
  void end_part(std::span<const EventFacts> facts);
  // The next part of the run, as if it began anew. A call with ranks in several parts is in none.
  void merge(Replays&& next);
  void pack(Archive& archive);
  void add_left(const GroupCall&) {}

  void write(Analysis& analysis) const;

 private:
  const Run& run_;
  const Clocks& clocks_;
  const Sites& sites_;
  Alpha alpha_;
  Arrivals arrivals_;
  std::vector<const Sites::Site*> all_sites_;  // from which a call is made
  Meanwhile meanwhile_;
  std::vector<PatternFinder> patterns_;  // by number of the site
  std::unique_ptr<ExitModel> model_;
  SavingsReplay savings_;
  std::string why_no_what_if_;
  std::optional<WhatIfReplay> what_if_;
};

}  // namespace papaya::report
