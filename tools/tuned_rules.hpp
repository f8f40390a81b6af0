// A tuning file out of what the benchmark measured: for each collective, communicator and size the algorithm that was
// worth more than noise. Pure.
#pragma once

#include <string>
#include <vector>

namespace papaya {

struct Tuned {
  std::string json;                  // the tuning file; empty if there is nothing to choose from
  std::vector<std::string> choices;  // a line for each rule, for people
  std::vector<std::string> notes;    // what was left out
};

// `texts` are JSON files of `papaya bench`, `names` what to call them. One MPI's and one machine's: false with the
// reason in `problem` if they are not, or if one is something else.
bool tuned_rules(const std::vector<std::string>& texts, const std::vector<std::string>& names, Tuned& tuned,
                 std::string& problem);

}  // namespace papaya
