// Which files of a folder are of one run.
#pragma once

#include "profiler/read/read.hpp"

namespace papaya::report {

// Removes those that are of other runs than most, each with a problem. There is at least one file.
void remove_files_of_other_runs(Run& run);
// And all records of a rank but the first; they are in the order of the ranks.
void remove_second_records(Run& run);

}  // namespace papaya::report
