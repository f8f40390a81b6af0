// What the time in MPI outside of blocking collectives is spent on, and for whom, in a sentence.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/analysis/analysis.hpp"

namespace papaya::report {

struct Elsewhere {
  std::string text;  // begins with a space; empty: that time is little, or not known
  std::vector<std::int32_t>
      ranks;                 // compute while the others wait for them, ascending; empty: nobody does, or not enough
  std::string more;          // what those compute longer than the median of the others: "402 ms to 403 ms"
  bool in_finalize = false;  // they wait in MPI_Finalize
};

// Of the ranks of which it is known, of an even number the lower one; 0: of none.
double median_computing_ns(const Analysis& analysis);

// Of the rank's time outside MPI: at least so long it was not on a core, nor ready for one. 0: none, or not known.
double asleep_ns(const Analysis& analysis, const RankFigures& rank);
// That is most of the time: it waits for something else than MPI, rather than that it computes.
bool is_mostly_asleep(const Analysis& analysis, const RankFigures& rank);

// `named`: the rank that is already known to be late, -1 if none is.
Elsewhere elsewhere_of(const Analysis& analysis, std::int32_t named);

}  // namespace papaya::report
