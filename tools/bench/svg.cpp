#include "tools/bench/svg.hpp"

#include <fmt/format.h>

#include <array>

namespace papaya::bench {

const char* colour_of(std::size_t series) noexcept {
  constexpr std::array<const char*, 8> colours = {"#808080", "#0072b2", "#d55e00", "#009e73",
                                                  "#cc79a7", "#b8860b", "#56b4e9", "#7f5fc7"};
  return colours[series % colours.size()];
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string svg_begin(double width, double height) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"13\">\n"
      "<style>\n  .ground {{ fill: #ffffff }}\n  text {{ fill: #222222 }}\n  .faint {{ fill: #666666 }}\n  "
      ".grid {{ stroke: #dddddd }}\n"
      "  .axis {{ stroke: #888888; fill: none }}\n"
      "  @media (prefers-color-scheme: dark) {{\n    .ground {{ fill: #16181c }}\n    text {{ fill: #e6e6e6 "
      "}}\n    .faint {{ fill: #a0a0a0 }}\n"
      "    .grid {{ stroke: #34383f }}\n  }}\n</style>\n<rect class=\"ground\" width=\"{0}\" "
      "height=\"{1}\"/>\n",
      width, height);
}

}  // namespace papaya::bench
