// Reads rank-NNNNN.papz: the events that the ring of the rank's record has lost.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/read/read.hpp"
#include "profiler/record/spill_format.hpp"

namespace papaya::report {

// Events before `end`, in the order they began, and where some are missing. Whatever the bytes, this does not throw but
// for lack of memory.
struct SpilledEvents {
  std::vector<trace::Event> events;
  std::vector<Gap> gaps;      // indices into `events`
  std::uint64_t unread = 0;   // in the file, left there
  std::uint64_t skipped = 0;  // torn or impossible
  trace::spill::FileHeader header{};
  // What is wrong with the file, if anything: continues a sentence that begins with its name.
  std::string problem;
  Trouble trouble = Trouble::damaged;
};

SpilledEvents read_spilled(const Source& source, const RankFile& record, std::uint64_t end, bool with_events);

// Whether all fields of event `number` are possible in this record.
bool is_whole(const trace::Event& event, std::uint64_t number, const trace::Header& header);

}  // namespace papaya::report
