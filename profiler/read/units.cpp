#include "profiler/read/units.hpp"

#include <fmt/format.h>

#include <cmath>

namespace papaya::report {

std::string time_text(double ns) {
  struct Unit {
    double ns;
    const char* name;
  };
  constexpr Unit units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}};
  const double size = std::abs(ns);
  if (size >= 120e9) {
    const double minutes = std::floor(ns / 60e9);
    if (size < 7200e9) return fmt::format("{:.0f} min {:.0f} s", minutes, std::floor((ns - minutes * 60e9) / 1e9));
    return fmt::format("{:.1f} h", ns / 3600e9);
  }
  for (const Unit& unit : units) {
    const double value = size / unit.ns;
    if (value < 0.9995) continue;
    return fmt::format("{:.{}f} {}", ns / unit.ns, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, unit.name);
  }
  return fmt::format("{:.0f} ns", size < 0.5 ? 0.0 : ns);
}

std::string count_text(std::uint64_t count) {
  std::string text = fmt::format("{}", count);
  for (std::size_t position = text.size(); position > 3; position -= 3) text.insert(position - 3, 1, ',');
  return text;
}

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count_text(count), count == 1 ? one : many);
}

std::string share_text(double share) {
  const double percent = share * 100;
  if (percent == 0) return "0 %";
  if (percent < 0.1) return "less than 0.1 %";
  return fmt::format("{:.{}f} %", percent, percent < 9.95 ? 1 : 0);
}

}  // namespace papaya::report
