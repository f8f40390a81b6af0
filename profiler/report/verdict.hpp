// The report in a sentence: who is late, and what that costs.
#pragma once

#include <cstdint>
#include <string>

#include "profiler/analysis/analysis.hpp"
#include "profiler/report/elsewhere.hpp"
#include "profiler/report/finding.hpp"

namespace papaya::report {

struct Verdict {
  std::string text;
  Finding finding = Finding::nothing;
  std::int32_t rank = -1;    // where the delays began; -1: none in particular, or not known
  bool is_explained = true;  // its delays, by what it or another rank computes longer than the others
  Elsewhere elsewhere;
  bool is_mostly_elsewhere = false;  // that costs more than late ranks at collectives, and is told first
};

Verdict verdict_on(const Analysis& analysis);

}  // namespace papaya::report
