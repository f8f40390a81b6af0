// Who is late at blocking collectives, and what that costs, in a sentence.
#pragma once

#include <cstdint>
#include <string>

#include "profiler/analysis/analysis.hpp"
#include "profiler/report/finding.hpp"

namespace papaya::report {

struct Lateness {
  std::string text;
  Finding finding = Finding::nothing;
  std::int32_t rank = -1;    // where the delays began; -1: none in particular, or not known
  bool is_explained = true;  // its delays, by what it or another rank computes longer than the others
};

// Below this share of the run the verdict is that arrivals are balanced.
inline constexpr double balanced_share = 0.01;

// Of a run with calls that are compared.
Lateness lateness_of(const Analysis& analysis);
// Where waiting costs little, `cost` of it in words.
std::string little_waiting(const Analysis& analysis, const std::string& cost);
std::string decapitalised(std::string sentence);

}  // namespace papaya::report
