// papaya bench kernels: bytes per second of every reduction kernel beside those of a copy. No MPI.
#pragma once

#include "tools/bench/options.hpp"

namespace papaya::bench {

// Prints the table, writes the files asked for; the exit code of the command.
int run_kernels(const Options& options);

}  // namespace papaya::bench
