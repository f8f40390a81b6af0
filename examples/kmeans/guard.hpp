// A process between MPICH's launcher and each rank.
#pragma once

#include <optional>

namespace kmeans {

// Before MPI_Init. Where there has to be one, starts the program once more and waits for it: the exit code, in this
// process. Nothing: go on.
std::optional<int> guard(char** argv);

}  // namespace kmeans
