// What a verdict is about.
#pragma once

#include <cstdint>

namespace papaya::report {

enum class Finding : std::uint8_t {
  nothing,       // there is nothing to compare
  aborted,       // a rank called MPI_Abort
  unfinished,    // a call that some ranks never came to
  balanced,      // arrivals
  costly_rank,   // one rank is late
  late_rank,     // one rank is late, but costs little
  costly_calls,  // a few calls cost more than all the others
  late_ranks,    // a few ranks are late
  imbalanced,    // arrivals, and no single rank is responsible
  overwritten,   // only what is left of the run is known call by call
};

}  // namespace papaya::report
