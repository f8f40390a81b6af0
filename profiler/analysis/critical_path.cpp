#include "profiler/analysis/critical_path.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "profiler/analysis/archive.hpp"

namespace papaya::report {

CriticalPath::CriticalPath(const Run& run)
    : run_(run), path_ns_(run.files.size()), seen_ns_(run.files.size()), begun_ns_(run.files.size()) {
  if (!run.missing.empty() || run.unwanted_ranks > 0) is_known_ = false;
  for (const RankFile& file : run.files) {
    phase_waits_ns_.emplace_back(file.header.phase_count);
    is_cut_ = is_cut_ || !file.gaps.empty();
    const bool has_other_gaps = file.gaps.size() > 1 || (file.gaps.size() == 1 && file.gaps.front().before != 0);
    // What a rank did before a call whose interval is overwritten counts as computing.
    const std::uint64_t kept = file.header.event_count - std::min(file.header.event_count, file.overwritten_events);
    const bool has_lost_intervals = !file.timed.empty() && kept > file.header.interval_capacity;
    if (file.header.timed_count == 0 || !file.weak.rows.empty() || has_other_gaps || has_lost_intervals ||
        file.skipped_events > 0 || was_switched_off(file.header))
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
  for (std::size_t i = 0; i < exits_ns_.size(); ++i) {
    const Sighting& sighting = call.sightings[i];
    path_ns_[sighting.file] = exits_ns_[i];
    phase_waits_ns_[sighting.file][sighting.phase] += exits_ns_[i] - chains_ns_[i];
  }
  if (!is_cut_ || call.sightings.size() != run_.files.size()) return;
  longest_ns_ = *std::max_element(chains_ns_.begin(), chains_ns_.end());
  for (const Sighting& sighting : call.sightings) {
    end_ns_ = std::max(end_ns_, sighting.arrival_ns);
    most_computed_ns_ = std::max(most_computed_ns_, sighting.computed_until_ns - begun_ns_[sighting.file]);
  }
}

void CriticalPath::merge(const CriticalPath& next) {
  if (is_cut_) {
    if (!next.has_begun_) return;
    if (!has_begun_) begin_ns_ = next.begin_ns_;
    has_begun_ = true;
    end_ns_ = std::max(end_ns_, next.end_ns_);
    longest_ns_ += next.longest_ns_;
    most_computed_ns_ += next.most_computed_ns_;
    return;
  }
  for (std::size_t f = 0; f < path_ns_.size(); ++f) {
    path_ns_[f] += next.path_ns_[f];
    seen_ns_[f] += next.seen_ns_[f];
    for (std::size_t p = 0; p < phase_waits_ns_[f].size(); ++p) phase_waits_ns_[f][p] += next.phase_waits_ns_[f][p];
  }
}

void CriticalPath::pack(Archive& archive) {
  archive(path_ns_, seen_ns_, phase_waits_ns_, has_begun_, begin_ns_, end_ns_, longest_ns_, most_computed_ns_);
}

void CriticalPath::write(std::span<const EventFacts> facts, std::span<const Group> groups, Analysis& analysis) const {
  const bool has_skipped = std::any_of(facts.begin(), facts.end(), [](const auto& one) { return one.skipped > 0; });
  if (!is_known_ || has_skipped || !analysis.finalized || !analysis.efficiency.is_known) return;
  if (is_cut_) return write_part(analysis);
  std::vector<double> ends_ns(path_ns_);
  std::map<std::int32_t, double> computing_ns;  // by rank
  for (const RankFigures& rank : analysis.late_ranks) computing_ns[rank.rank] = rank.time.computing_ns;
  for (std::size_t f = 0; f < run_.files.size(); ++f)
    ends_ns[f] += std::max(0.0, computing_ns[run_.files[f].header.rank] - seen_ns_[f]);
  add_transfer(analysis.efficiency, analysis.run_ns, *std::max_element(ends_ns.begin(), ends_ns.end()));
  for (std::size_t g = 0; g < groups.size(); ++g) {
    double end_ns = 0;
    for (const Member& member : groups[g].members) end_ns = std::max(end_ns, ends_ns[member.file]);
    add_transfer(analysis.communicators[g].efficiency, analysis.run_ns, end_ns);
  }
  write_phases(analysis);
}

void CriticalPath::write_part(Analysis& analysis) const {
  if (end_ns_ <= begin_ns_ || most_computed_ns_ <= 0) return;
  PartEfficiency& part = analysis.recorded_efficiency;
  part.span_ns = end_ns_ - begin_ns_;
  part.of_part = {
      .is_known = true, .of_ns = part.span_ns, .communication = std::min(1.0, most_computed_ns_ / part.span_ns)};
  add_transfer(part.of_part, part.span_ns, longest_ns_);
}

void CriticalPath::write_phases(Analysis& analysis) const {
  std::map<std::string, double> longest_ns;
  for (std::size_t f = 0; f < run_.files.size(); ++f) {
    std::map<std::string, double> own_ns;
    for (std::size_t number = 0; number < phase_waits_ns_[f].size(); ++number)
      own_ns[clean_text(run_.files[f].texts->phase_names[number])] +=
          computing_in_phase_ns(run_.files[f], number) + phase_waits_ns_[f][number];
    for (const auto& [name, ns] : own_ns) longest_ns[name] = std::max(longest_ns[name], ns);
  }
  for (PhaseFigures& phase : analysis.phases) add_transfer(phase.efficiency, phase.longest_ns, longest_ns[phase.name]);
}

}  // namespace papaya::report
