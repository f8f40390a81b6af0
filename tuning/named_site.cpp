#include "tuning/named_site.hpp"

#include <fmt/format.h>

namespace papaya::tuning {

namespace {

bool are_digits(std::string_view text, std::string_view digits) {
  return !text.empty() && text.find_first_not_of(digits) == text.npos;
}

}  // namespace

// solve.c:88, solver+0x11f3, main (solve.c:88), main (solver).
bool looks_like_site(std::string_view place) {
  if (place.ends_with(')') && place.find(" (") != place.npos) return true;
  const std::size_t colon = place.rfind(':');
  if (colon != place.npos && colon > 0 && are_digits(place.substr(colon + 1), "0123456789")) return true;
  const std::size_t plus = place.rfind("+0x");
  return plus != place.npos && plus > 0 && are_digits(place.substr(plus + 3), "0123456789abcdef");
}

bool is_site(std::string_view place, const NamedSite& site) {
  if (!site.module.empty() && place == fmt::format("{}+{:#x}", site.module, site.offset)) return true;
  if (site.file.empty()) return !site.function.empty() && place == fmt::format("{} ({})", site.function, site.module);
  const std::string line = fmt::format("{}:{}", site.file, site.line);
  return place == line || (!site.function.empty() && place == fmt::format("{} ({})", site.function, line));
}

}  // namespace papaya::tuning
