// What the record lacks: events overwritten, torn or unread, tables that were full, traces that ended early.
#pragma once

#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/call_stream.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

void count_losses(const Run& run, const CallStream& stream, RecordFacts& facts);

}  // namespace papaya::report
