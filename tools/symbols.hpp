// The names of call sites: functions, files and lines, from the symbols and the debug information of the program's files as
// far as they are there and still those that ran.
#pragma once

#include "profiler/analysis.hpp"

namespace papaya {

// Fills in what it can and leaves the rest as it is. Notes which files are no longer those that ran.
void symbolise(report::Analysis& analysis);

}  // namespace papaya
