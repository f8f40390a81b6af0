#include "tools/bench/patterns.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace papaya::bench {

namespace {

constexpr std::array<PatternRow, 11> rows = {{
    {Pattern::none, "none", "all at once"},
    {Pattern::random, "random", "uniform within the skew, anew at every call"},
    {Pattern::ascending, "ascending", "evenly spread, rank 0 first"},
    {Pattern::descending, "descending", "evenly spread, rank 0 last"},
    {Pattern::first_late, "first-late", "rank 0 late by the skew"},
    {Pattern::last_late, "last-late", "the last rank late by the skew"},
    {Pattern::half_late, "half-late", "the upper half of the ranks late by the skew"},
    {Pattern::straggler, "straggler", "one rank late by the skew, another one at every call"},
    {Pattern::exponential, "exponential", "exponential with a quarter of the skew as mean, cut at the skew"},
    {Pattern::workers, "workers",
     "half of the skew each rank's own, evenly spread, the other half uniform, anew at every call"},
    {Pattern::replay, "replay", "from a file"},
}};

constexpr std::uint64_t mix(std::uint64_t x) noexcept {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

bool is_separator(char c) {
  return c == ' ' || c == '\t' || c == ',' || c == ';' || c == '\r';
}

}  // namespace

std::span<const PatternRow> pattern_rows() noexcept {
  return rows;
}

std::string_view name_of(Pattern pattern) noexcept {
  return rows[static_cast<std::size_t>(pattern)].name;
}

double uniform(std::uint64_t seed, std::uint64_t call, std::uint64_t rank) noexcept {
  return static_cast<double>(mix(mix(mix(seed) + call) + rank) >> 11) * 0x1p-53;
}

double lateness(Pattern pattern, int rank, int ranks, std::uint64_t call, std::uint64_t seed) noexcept {
  const auto unsigned_rank = static_cast<std::uint64_t>(rank);
  const double share = ranks > 1 ? static_cast<double>(rank) / (ranks - 1) : 0;
  switch (pattern) {
    case Pattern::none:
    case Pattern::replay:
      return 0;
    case Pattern::random:
      return uniform(seed, call, unsigned_rank);
    case Pattern::ascending:
      return share;
    case Pattern::descending:
      return ranks > 1 ? 1 - share : 0;
    case Pattern::first_late:
      return rank == 0 ? 1 : 0;
    case Pattern::last_late:
      return rank == ranks - 1 ? 1 : 0;
    case Pattern::half_late:
      return 2 * rank >= ranks ? 1 : 0;
    case Pattern::straggler:
      return call % static_cast<std::uint64_t>(ranks) == unsigned_rank ? 1 : 0;
    case Pattern::exponential:
      return std::min(1.0, -0.25 * std::log1p(-uniform(seed, call, unsigned_rank)));
    case Pattern::workers:
      return 0.5 * share + 0.5 * uniform(seed, call, unsigned_rank);
  }
  return 0;
}

double Replay::largest_us() const noexcept {
  return offsets_us.empty() ? 0 : *std::max_element(offsets_us.begin(), offsets_us.end());
}

double Replay::offset_us(int rank, std::uint64_t call) const noexcept {
  const auto width = static_cast<std::size_t>(ranks);
  return offsets_us[(call % calls()) * width + static_cast<std::size_t>(rank)];
}

bool parse_replay(std::string_view text, int ranks, Replay& replay, std::string& problem) {
  replay = {ranks, {}};
  const auto width = static_cast<std::size_t>(ranks);
  std::size_t line_number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_number;
    line = line.substr(0, line.find('#'));
    std::vector<double> offsets;
    while (true) {
      while (!line.empty() && is_separator(line.front())) line.remove_prefix(1);
      if (line.empty()) break;
      double value = 0;
      const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), value);
      const auto used = static_cast<std::size_t>(rest - line.data());
      if (error != std::errc{} || !std::isfinite(value) || (used < line.size() && !is_separator(line[used]))) {
        problem = "line " + std::to_string(line_number) + " has a word that is no number of microseconds";
        return false;
      }
      offsets.push_back(value);
      line.remove_prefix(used);
    }
    if (offsets.empty()) continue;
    if (offsets.size() != width) {
      problem = "line " + std::to_string(line_number) + " has " + std::to_string(offsets.size()) +
                " arrivals, but there are " + std::to_string(ranks) + " ranks";
      return false;
    }
    const double first = *std::min_element(offsets.begin(), offsets.end());
    for (const double offset : offsets) replay.offsets_us.push_back(offset - first);
  }
  if (replay.offsets_us.empty()) {
    problem = "has no call in it";
    return false;
  }
  return true;
}

}  // namespace papaya::bench
