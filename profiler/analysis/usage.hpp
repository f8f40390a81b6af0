// What the system did for the ranks' processes, as a reason why one of them is slow: no core, or pages from disk.
#pragma once

#include <string>
#include <vector>

#include "profiler/read/read.hpp"

namespace papaya::report {

// Of a rank's time without a core, from which on that is a reason.
inline constexpr double least_core_wait_share = 0.05;

struct UsageFigures {
  bool is_known = false;
  bool knows_core_wait = false;
  double cpu_share = 0;        // of the time from MPI_Init to MPI_Finalize, all threads: may exceed 1
  double core_wait_share = 0;  // of it, the first thread was ready and had no core
  double involuntary_per_s = 0;
  double major_faults = 0;
  double minor_faults = 0;
  double peak_bytes = 0;
  int core = -1;        // at the end; -1: not known
  double core_ghz = 0;  // 0: not known
};

UsageFigures usage_figures(const trace::Usage& usage);
// Each figure's median over the ranks of which it is known, of an even number the lower one; no core.
UsageFigures median_of(const std::vector<UsageFigures>& ranks);

enum class SlowReason { unknown, no_core, pages_from_disk };

struct WhySlow {
  SlowReason reason = SlowReason::unknown;
  std::string text;  // a sentence; empty: not known
};

// Why the rank may be slow, where it differs much from the median. Whoever says what to do about it goes by `reason`.
WhySlow why_slow(int rank, const UsageFigures& figures, const UsageFigures& median);

}  // namespace papaya::report
