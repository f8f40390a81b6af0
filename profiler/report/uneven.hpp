// Ranks that compute much longer than the others over the run, whether anybody waits for them in a collective or not: a
// bcast's root, a reduce's other ranks and the last rank of a scan wait for nobody.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/analysis/analysis.hpp"

namespace papaya::report {

struct Uneven {
  std::vector<std::int32_t> ranks;  // ascending; empty: none computes much longer, or that is not known
  bool is_asleep = false;           // that one: mostly on no core
  std::string more;                 // what the one of them that computes longest does so longer than the median
  std::string where;                // "before calls at main (app.c:3)"; empty: not before calls that all ranks make
};

Uneven uneven_computing(const Analysis& analysis);
// Of the ranks that come to MPI_Finalize last, those that do so because of what they compute longer before calls that
// all ranks make; `where` says which.
Uneven uneven_before_the_end(const Analysis& analysis);
// " Rank 0 computes 506 ms longer than the median of the ranks, before its calls at main (app.c:3)."
std::string text_of(const Uneven& uneven);

}  // namespace papaya::report
