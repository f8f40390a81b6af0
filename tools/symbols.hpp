// The names of call sites: functions, files and lines, from the symbols and the debug information of the program's
// files as far as they are there and still those that ran.
#pragma once

#include <string>
#include <vector>

#include "profiler/report/report.hpp"

namespace papaya {

using CallSites = std::vector<std::vector<report::NamedFrame>*>;

// Fills in what it can and leaves the rest as it is. Returns a sentence for each file that is no longer the one that
// ran.
std::vector<std::string> symbolise(const CallSites& sites);
// The same for all of a report's, with the sentences as its notes.
void symbolise(report::Report& analysis);

}  // namespace papaya
