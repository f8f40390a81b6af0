#include "profiler/analysis/losses.hpp"

#include <algorithm>
#include <cmath>

#include "profiler/analysis/archive.hpp"

namespace papaya::report {

void count_losses(const Run& run, std::span<const EventFacts> facts_of_files, std::uint64_t untabled_events,
                  RecordFacts& facts) {
  std::vector<std::int32_t> limited;
  std::vector<std::int32_t> failed;
  std::uint64_t overwritten = 0;
  for (const RankFile& file : run.files) {
    overwritten += file.overwritten_events;
    facts.unread_events += file.unread_events;
    facts.torn_events += file.skipped_events;
    facts.lost_communicators += file.header.lost_communicators;
    facts.lost_call_sites += file.header.lost_call_sites;
    facts.lost_weak_collectives += file.weak.lost_collectives;
    facts.weak_events += file.weak.begun;
    facts.missing_weak_events += file.weak.overwritten;
    facts.is_trace = facts.is_trace || file.is_spilled;
    if (file.spill_state == trace::spill::State::limited) {
      limited.push_back(file.header.rank);
      facts.trace_limit = std::max(facts.trace_limit, file.spill_limit);
    } else if (file.spill_state == trace::spill::State::failed) {
      failed.push_back(file.header.rank);
      facts.trace_error = file.spill_error;
    }
  }
  facts.missing_events = overwritten - facts.unread_events;
  facts.trace_limited = to_ranges(limited);
  facts.trace_failed = to_ranges(failed);
  for (const EventFacts& own : facts_of_files) facts.torn_events += own.skipped;
  facts.untabled_events = untabled_events;
}

void NotCompared::add(const GroupCall& call) {
  if (call.match == Match::conflicting && conflicting_calls++ == 0) first_conflict = call.conflict;
  if (call.match == Match::unmatched) ++unmatched_calls;
  if (call.match != Match::two_groups) return;
  intercommunicator_calls += call.sightings.size();
  for (const Sighting& sighting : call.sightings)
    if (!std::isnan(sighting.exit_ns)) intercommunicator_ns += sighting.exit_ns - sighting.arrival_ns;
}

void NotCompared::merge(const NotCompared& next) {
  unmatched_calls += next.unmatched_calls;
  intercommunicator_calls += next.intercommunicator_calls;
  intercommunicator_ns += next.intercommunicator_ns;
  if (conflicting_calls == 0) first_conflict = next.first_conflict;
  conflicting_calls += next.conflicting_calls;
}

void NotCompared::pack(Archive& archive) {
  archive(unmatched_calls, intercommunicator_calls, intercommunicator_ns, conflicting_calls, first_conflict);
}

void NotCompared::write(RecordFacts& facts) const {
  facts.unmatched_calls = unmatched_calls;
  facts.intercommunicator_calls = intercommunicator_calls;
  facts.intercommunicator_ns = intercommunicator_ns;
  facts.conflicting_calls = conflicting_calls;
  facts.first_conflict = first_conflict;
}

}  // namespace papaya::report
