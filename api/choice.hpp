// Which algorithm serves a weakly consistent collective, and with which parameters: from the text that a program gives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/weak/weak.hpp"

namespace papaya {

struct WeakChoice {
  const WeakDescriptor* algorithm = nullptr;
  std::vector<std::int64_t> values;  // one per parameter
};

// What papaya chooses by, where the program does not.
struct WeakFacts {
  std::uint64_t bytes;    // of a message
  bool has_slack = true;  // not 0
};

// `text` is empty or "auto" for papaya's choice, else NAME[:parameter=value,...]. False if it cannot be used; then
// `problem` says why.
bool choose(WeakCollective collective, std::string_view text, const WeakFacts& facts, WeakChoice& choice,
            std::string& problem);

// A parameter of the algorithm; false if it has none of that name, or the value is out of range.
bool set(WeakChoice& choice, std::string_view parameter, std::int64_t value, std::string& problem);

}  // namespace papaya
