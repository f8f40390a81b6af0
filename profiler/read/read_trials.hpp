// Reads what was tried (PAPAYA_ADAPT) from a rank's record.
#pragma once

#include "profiler/read/read.hpp"

namespace papaya::report {

// Where the table ends; 0: there is none. No sum of what is in the header is too large.
std::uint64_t end_of_trials(const trace::Header& header);

// Fills `file.trials` with the rows that can be, once the record is known to have the table whole.
void read_trials(const Source& source, const trace::Header& header, RankFile& file);

}  // namespace papaya::report
