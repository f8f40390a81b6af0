// Which programs papaya is for, where a whole site preloads it: PAPAYA_INCLUDE and PAPAYA_EXCLUDE, POSIX extended
// regular expressions. For libpapaya.so as well, which has no C++ library.
#pragma once

#include <regex.h>

namespace papaya::program_filter {

inline bool is_expression(const char* text) noexcept {
  regex_t expression;
  if (regcomp(&expression, text, REG_EXTENDED | REG_NOSUB) != 0) return false;
  regfree(&expression);
  return true;
}

inline bool is_set(const char* text) noexcept {
  return text != nullptr && *text != '\0';
}

// What is no expression matches nothing.
inline bool matches(const char* expression, const char* program) noexcept {
  regex_t compiled;
  if (regcomp(&compiled, expression, REG_EXTENDED | REG_NOSUB) != 0) return false;
  const bool found = regexec(&compiled, program, 0, nullptr, 0) == 0;
  regfree(&compiled);
  return found;
}

// The name of the variable that leaves a program out; nullptr if none does. `program`: the path of its file, followed
// by its arguments.
inline const char* left_out_by(const char* include, const char* exclude, const char* program) noexcept {
  if (is_set(exclude) && matches(exclude, program)) return "PAPAYA_EXCLUDE";
  return is_set(include) && !matches(include, program) ? "PAPAYA_INCLUDE" : nullptr;
}

}  // namespace papaya::program_filter
