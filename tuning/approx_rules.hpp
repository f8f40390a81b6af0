// PAPAYA_APPROX: which calls of an unmodified program may return approximate results, by which weakly consistent
// collective, and how far off. Rules are separated by commas, as are the parameters of one:
//
//   COLLECTIVE@PLACE[|PLACE...]=NAME[:parameter=value,...],...
//
// A place is the name of a communicator; what looks like a call site, as the report writes it, is kept apart, and in
// double quotes it is a name, too.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/weak/weak.hpp"
#include "base/collective.hpp"

namespace papaya::tuning {

struct ApproxRule {
  Collective collective{};
  std::vector<std::string> names;  // of communicators
  std::vector<std::string> sites;
  const WeakDescriptor* algorithm = nullptr;
  std::vector<std::int64_t> values;  // one per parameter of the algorithm
  double threshold = 1;              // thresholds only
  int cycle = 1;                     // calls of an iteration, each of which is combined with its like alone

  // For people: communicator "gradients" or call site solve.c:88; ssp_sharded, slack 2.
  std::string places() const;
  std::string bound() const;
  // As WeakChoice takes it: NAME:parameter=value,...
  std::string selection() const;
};

// More are not of use, and their numbers have to fit a word.
inline constexpr std::size_t most_approx_rules = 32;

// False if the text cannot be used; then `problem` says why and what is possible.
bool parse_approx(std::string_view text, std::span<const WeakDescriptor* const> algorithms,
                  std::vector<ApproxRule>& rules, std::string& problem);

// The sentence for a user whose value has no effect because of `problem`.
std::string without_effect(std::string_view value, std::string_view problem);

}  // namespace papaya::tuning
