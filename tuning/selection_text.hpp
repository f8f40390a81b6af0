// Selections as a user writes them, in PAPAYA_ALLREDUCE and its like and in tuning files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/collective.hpp"
#include "base/settings.hpp"
#include "tuning/rule.hpp"

namespace papaya::tuning {

// What a selection calls as it was called before.
struct OldName {
  std::string_view old_name;
  std::string_view name;
  bool operator==(const OldName&) const = default;
};

struct Parsed {
  std::vector<Rule> rules;
  bool automatic = true;  // `auto`
  std::vector<OldName> old_names;
};

// Parses `auto`, `native`, `NAME[:param=value,...]` or `LOW-HIGH:NAME...` lists. False if it cannot be used;
// then `problem` says why, with the nearest valid name. Old names of algorithms and parameters are understood.
// Nonblocking calls have no `auto`, and only algorithms with a split phase.
bool parse(Collective collective, Form form, std::string_view text, Parsed& parsed, std::string& problem);

// The parts of it. NAME or `native`, with the parameters' defaults; `param=value` of the algorithm that the rule has.
bool parse_algorithm(Collective collective, Form form, std::string_view name, Rule& rule,
                     std::vector<OldName>& old_names, std::string& problem);
bool parse_parameter(std::string_view word, Rule& rule, std::vector<OldName>& old_names, std::string& problem);

// Without blanks at its ends.
std::string_view trim(std::string_view text);
std::string lower(std::string_view text);

// The sentence that asks for the names of today.
std::string text_of(const std::vector<OldName>& old_names);

// The variable that selects the collective's algorithm; false if it has none.
bool variable_of(Collective collective, Variable& variable, Form form = Form::blocking) noexcept;

// The collective of a name such as "allreduce" or "MPI_Allreduce", in any case; false if there is none.
bool collective_of(std::string_view name, Collective& collective) noexcept;

}  // namespace papaya::tuning
