// One rank's record out of its file, which may be anything.
#pragma once

#include <string>
#include <string_view>

#include "profiler/read/read.hpp"

namespace papaya::report {

// Thrown by read_record().
struct Rejected {
  Trouble trouble;
  std::string reason;  // continues a sentence that begins with the file's name
};

// Names and texts that ranks have in common are the run's.
RankFile read_record(Run& run, const std::string& name, const Source& source, Extent extent);

bool is_streamed(Extent extent);

// `reason` continues a sentence that begins with the file's name.
void add_problem(Run& run, Trouble trouble, const std::string& file, std::string_view reason);

}  // namespace papaya::report
