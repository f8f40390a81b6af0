// Reads rank-NNNNN.papx: what has become of the rules of PAPAYA_APPROX on the rank.
#pragma once

#include <string>

#include "profiler/read/read.hpp"

namespace papaya::report {

// Fills `record.approx`. As read_weak().
std::string read_approx(const Source& source, RankFile& record);

}  // namespace papaya::report
