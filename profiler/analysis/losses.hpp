// What the record lacks: events overwritten, torn or unread, tables that were full, traces that ended early; and calls
// that are there but cannot be compared.
#pragma once

#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/call_stream.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

void count_losses(const Run& run, const CallStream& stream, RecordFacts& facts);
void count_not_compared(const GroupCall& call, RecordFacts& facts);

}  // namespace papaya::report
