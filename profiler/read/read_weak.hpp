// Reads rank-NNNNN.papw: the rank's calls of weakly consistent collectives.
#pragma once

#include <string>

#include "profiler/read/read.hpp"

namespace papaya::report {

// Fills `record.weak`. What is wrong with the file, if anything, continues a sentence that begins with its name; then
// nothing of it is taken. Whatever the bytes, this does not throw but for lack of memory.
std::string read_weak(const Source& source, RankFile& record);

}  // namespace papaya::report
