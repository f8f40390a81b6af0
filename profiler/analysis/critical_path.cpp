#include "profiler/analysis/critical_path.hpp"

#include <algorithm>
#include <utility>

namespace papaya::report {

CriticalPath::CriticalPath(const Run& run)
    : run_(run), path_ns_(run.files.size()), seen_ns_(run.files.size()), begun_ns_(run.files.size()) {
  if (!run.missing.empty() || run.unwanted_ranks > 0) is_known_ = false;
  for (const RankFile& file : run.files) {
    is_cut_ = is_cut_ || !file.gaps.empty();
    const bool has_other_gaps = file.gaps.size() > 1 || (file.gaps.size() == 1 && file.gaps.front().before != 0);
    // What a rank did before a call whose interval is overwritten counts as computing.
    const std::uint64_t kept = file.header.event_count - std::min(file.header.event_count, file.overwritten_events);
    const bool has_lost_intervals = !file.timed.empty() && kept > file.header.interval_capacity;
    if (file.header.timed_count == 0 || !file.weak.rows.empty() || has_other_gaps || has_lost_intervals ||
        file.skipped_events > 0)
      is_known_ = false;
  }
}

// Of a record without its beginning: whether chains have begun before this call. They begin at the first one of all
// ranks.
bool CriticalPath::begins_at(const GroupCall& call) {
  const bool has_begun = has_begun_;
  has_begun_ = has_begun_ || call.sightings.size() == run_.files.size();
  for (const Sighting& sighting : call.sightings) {
    if (has_begun) break;
    seen_ns_[sighting.file] = sighting.computed_until_ns;
    begun_ns_[sighting.file] = sighting.computed_until_ns;
    begin_ns_ = std::max(begin_ns_, sighting.arrival_ns);
  }
  return has_begun;
}

void CriticalPath::add(const GroupCall& call) {
  if (!is_known_ || (is_cut_ && !begins_at(call))) return;
  chains_ns_.clear();
  for (const Sighting& sighting : call.sightings)
    chains_ns_.push_back(path_ns_[sighting.file] + sighting.computed_until_ns -
                         std::exchange(seen_ns_[sighting.file], sighting.computed_until_ns));
  exits_ns_.resize(chains_ns_.size());
  earliest_exits(roles_of(call), chains_ns_, exits_ns_);
  for (std::size_t i = 0; i < exits_ns_.size(); ++i) path_ns_[call.sightings[i].file] = exits_ns_[i];
  if (!is_cut_ || call.sightings.size() != run_.files.size()) return;
  longest_ns_ = *std::max_element(chains_ns_.begin(), chains_ns_.end());
  for (const Sighting& sighting : call.sightings) {
    end_ns_ = std::max(end_ns_, sighting.arrival_ns);
    most_computed_ns_ = std::max(most_computed_ns_, sighting.computed_until_ns - begun_ns_[sighting.file]);
  }
}

void CriticalPath::write(std::span<const EventFacts> facts, Analysis& analysis) const {
  const bool has_skipped = std::any_of(facts.begin(), facts.end(), [](const auto& one) { return one.skipped > 0; });
  if (!is_known_ || has_skipped || !analysis.finalized || !analysis.efficiency.is_known) return;
  if (is_cut_) {
    if (end_ns_ <= begin_ns_ || most_computed_ns_ <= 0) return;
    PartEfficiency& part = analysis.recorded_efficiency;
    part.span_ns = end_ns_ - begin_ns_;
    part.of_part = {.is_known = true, .communication = std::min(1.0, most_computed_ns_ / part.span_ns)};
    add_transfer(part.of_part, part.span_ns, longest_ns_);
    return;
  }
  double path_ns = 0;
  for (std::size_t f = 0; f < run_.files.size(); ++f) {
    const auto rank = std::find_if(analysis.late_ranks.begin(), analysis.late_ranks.end(),
                                   [&](const auto& one) { return one.rank == run_.files[f].header.rank; });
    path_ns = std::max(path_ns, path_ns_[f] + std::max(0.0, rank->time.computing_ns - seen_ns_[f]));
  }
  add_transfer(analysis.efficiency, analysis.run_ns, path_ns);
}

}  // namespace papaya::report
