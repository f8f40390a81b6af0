// Names for communicators. One that the program has named keeps its name; another is named by where it comes from, "dup
// of MPI_COMM_WORLD", and after what Horovod uses it for if it is Horovod's.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "profiler/read/read.hpp"

namespace papaya::report {

// Of every communicator in the record, by its id; no two alike.
std::map<std::uint64_t, std::string> communicator_names(const Run& run);

}  // namespace papaya::report
