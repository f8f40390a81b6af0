// The report in a sentence: who is late, and what that costs.
#pragma once

#include <cstdint>
#include <string>

#include "profiler/analysis/analysis.hpp"

namespace papaya::report {

// What the sentence is about.
enum class Finding : std::uint8_t {
  nothing,       // there is nothing to compare
  unfinished,    // a call that some ranks never came to
  balanced,      // arrivals
  costly_rank,   // one rank is late
  late_rank,     // one rank is late, but costs little
  costly_calls,  // a few calls cost more than all the others
  late_ranks,    // a few ranks are late
  imbalanced,    // arrivals, and no single rank is responsible
  overwritten,   // only what is left of the run is known call by call
};

struct Verdict {
  std::string text;
  Finding finding = Finding::nothing;
  std::int32_t rank = -1;    // where the delays began; -1: none in particular, or not known
  bool is_explained = true;  // its delays, by what it or another rank computes longer than the others
  // Outside of blocking collectives: the rank that computes while the others wait for it, in MPI_Finalize or before.
  std::int32_t elsewhere_rank = -1;
  bool in_finalize = false;
};

Verdict verdict_on(const Analysis& analysis);

}  // namespace papaya::report
