#include "profiler/report/text/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "profiler/read/units.hpp"

namespace papaya::report {
namespace {

constexpr std::size_t page_columns = 100;
constexpr std::size_t bar_columns = 8;

// A bar of `bar_columns` for the whole, in eighths of a column.
std::string bar(double share) {
  constexpr const char* eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double clamped = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0.0;
  const auto filled = static_cast<std::size_t>(std::round(clamped * bar_columns * 8));
  std::string text;
  for (std::size_t i = 0; i < filled / 8; ++i) text += "█";
  text += eighths[filled % 8];
  text.append(bar_columns - columns_of(text), ' ');
  return text;
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string shortened(std::string_view name, std::size_t columns) {
  constexpr std::string_view cut = "...";
  constexpr std::string_view ranks = ", rank";
  const std::size_t all = columns_of(name);
  if (all <= columns) return std::string(name);
  const std::size_t kept = columns - cut.size();
  const std::size_t at = name.rfind(ranks);
  const std::size_t end = std::min(kept, at == std::string_view::npos ? kept / 2 : columns_of(name.substr(at)));
  // Whole code points.
  const auto bytes_of = [&](std::size_t count) {
    std::size_t byte = 0;
    while (byte < name.size() && columns_of(name.substr(0, byte + 1)) <= count) ++byte;
    return byte;
  };
  std::string text(name.substr(0, bytes_of(kept - end)));
  text += cut;
  return text += name.substr(bytes_of(all - end));
}

std::string wrap(std::string_view text, std::string_view first_indent, std::size_t indent) {
  std::string page;
  std::string line(first_indent);
  std::size_t used = columns_of(line);
  bool line_is_empty = true;
  const auto end_line = [&] {
    page += line + "\n";
    line.assign(indent, ' ');
    used = indent;
    line_is_empty = true;
  };
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, space);
    text.remove_prefix(std::min(space + 1, text.size()));
    if (word.empty()) continue;
    if (!line_is_empty && used + 1 + columns_of(word) > page_columns) end_line();
    if (!line_is_empty) {
      line += ' ';
      ++used;
    }
    while (used + columns_of(word) > page_columns) {
      std::size_t cut = 0;
      for (std::size_t room = page_columns - used; room > 0; --room) {
        ++cut;
        while (cut < word.size() && (static_cast<unsigned char>(word[cut]) & 0xc0) == 0x80) ++cut;
      }
      line += word.substr(0, cut);
      word.remove_prefix(cut);
      end_line();
    }
    line += word;
    used += columns_of(word);
    line_is_empty = false;
  }
  return page + line + "\n";
}

std::string bytes_text(double bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  while (bytes >= 1023.5 && unit + 1 < std::size(units)) {
    bytes /= 1024;
    ++unit;
  }
  const int digits = unit == 0 || bytes >= 99.95 ? 0 : bytes >= 9.995 ? 1 : 2;
  std::string number = fmt::format("{:.{}f}", bytes, digits);
  if (number.find('.') != std::string::npos) {  // 8 KiB, not 8.00 KiB
    number.erase(number.find_last_not_of('0') + 1);
    if (number.back() == '.') number.pop_back();
  }
  return number + " " + units[unit];
}

double share_of(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

std::string share_bar(double share) {
  return fmt::format("{} {:>5}", bar(share), fmt::format("{:.1f}%", share * 100));
}

std::string between_nodes_text(const Analysis& analysis) {
  if (analysis.nodes < 2) return {};
  return fmt::format("; between nodes to within {}", time_text((analysis.nodes > 2 ? 2 : 1) * analysis.clock_error_ns));
}

std::string Table::text() const {
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  std::string page = "\n" + wrap(title_, "", 0);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const auto& row = rows_[r];
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - columns_of(row[i]), ' ');
      line += "  ";
      const bool is_left = i < left_columns_ || (last_is_words_ && i + 1 == row.size());
      line += is_left ? row[i] + padding : padding + row[i];
    }
    page += without_trailing_spaces(std::move(line)) + "\n";
    for (const std::string& text : below_[r]) page += wrap(text, "    ", 6);
  }
  return page;
}

}  // namespace papaya::report
