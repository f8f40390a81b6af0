// `papaya tune` under a launcher: measures part after part, and makes the tuning file anew after each.
#pragma once

#include <mpi.h>

#include "tools/tune_options.hpp"

namespace papaya::bench {

// Collective over `world`; the exit code.
int tune(const TuneOptions& options, MPI_Comm world);

}  // namespace papaya::bench
