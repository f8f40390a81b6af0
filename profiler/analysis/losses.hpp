// What the record lacks: events overwritten, torn or unread, tables that were full, traces that ended early; and calls
// that are there but cannot be compared.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/event_facts.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

// `facts_of_files`: by file.
void count_losses(const Run& run, std::span<const EventFacts> facts_of_files, std::uint64_t untabled_events,
                  RecordFacts& facts);

class Archive;

// Calls that are there but cannot be compared.
struct NotCompared {
  std::uint64_t unmatched_calls = 0;
  std::uint64_t intercommunicator_calls = 0;  // summed over ranks,
  double intercommunicator_ns = 0;            // and the time inside them
  std::uint64_t conflicting_calls = 0;
  std::string first_conflict;

  void add(const GroupCall& call);
  // The next part of the run.
  void merge(const NotCompared& next);
  void pack(Archive& archive);
  void write(RecordFacts& facts) const;
};

}  // namespace papaya::report
