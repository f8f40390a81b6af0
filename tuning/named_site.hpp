// Call sites as users write them, which is as the report does.
#pragma once

#include <cstdint>
#include <string_view>

namespace papaya::tuning {

// A line of the program, innermost frame of a call, by all that is known of it: what is not is empty.
struct NamedSite {
  std::string_view module;  // file name of the program or library
  std::uint64_t offset = 0;
  std::string_view function;
  std::string_view file;  // name of the source file
  int line = 0;
};
// Whether a place means it: file:line, function (file:line), function (module) or module+0xoffset.
bool is_site(std::string_view place, const NamedSite& site);

// Whether the text is one of these.
bool looks_like_site(std::string_view place);

}  // namespace papaya::tuning
