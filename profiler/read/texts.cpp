// Texts out of records, and of ranks.
#include <fmt/format.h>

#include "profiler/read/read.hpp"

namespace papaya::report {
namespace {

// Length of the UTF-8 sequence at the front of `text`, 0 if it is not valid.
std::size_t sequence_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t bytes = lead < 0x80                   ? 1
                            : lead >= 0xc2 && lead < 0xe0 ? 2
                            : lead >= 0xe0 && lead < 0xf0 ? 3
                            : lead >= 0xf0 && lead < 0xf5 ? 4
                                                          : 0;
  if (bytes == 0 || bytes > text.size()) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and what lies beyond U+10FFFF.
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) >= 0xa0) || (lead == 0xf0 && byte(1) < 0x90) ||
      (lead == 0xf4 && byte(1) >= 0x90)) {
    return 0;
  }
  return bytes;
}

}  // namespace

std::string clean_text(std::string_view field) {
  field = field.substr(0, field.find('\0'));
  std::string clean;
  clean.reserve(field.size());
  while (!field.empty()) {
    std::size_t bytes = sequence_bytes(field);
    if (bytes == 0) {
      clean += "\xef\xbf\xbd";  // U+FFFD, the replacement character
      bytes = 1;
    } else if (bytes == 1 && (static_cast<unsigned char>(field[0]) < 0x20 || field[0] == 0x7f)) {
      clean += ' ';
    } else {
      clean += field.substr(0, bytes);
    }
    field.remove_prefix(bytes);
  }
  return clean;
}

std::string to_text(std::span<const RankRange> ranges, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (i == most) return text + fmt::format(" and {} more ranges", ranges.size() - most);
    const auto& [first, last] = ranges[i];
    if (i > 0) text += ", ";
    text += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  return text;
}

std::vector<RankRange> to_ranges(std::span<const std::int32_t> ranks) {
  std::vector<RankRange> ranges;
  for (const std::int32_t rank : ranks) {
    if (!ranges.empty() && ranges.back().last + 1 == rank) {
      ranges.back().last = rank;
    } else {
      ranges.push_back({rank, rank});
    }
  }
  return ranges;
}

}  // namespace papaya::report
