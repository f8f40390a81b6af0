// Arrival patterns: when each rank comes to a call. Pure arithmetic, the same on every rank and machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace papaya::bench {

enum class Pattern : std::uint8_t {
  none,
  random,
  ascending,
  descending,
  first_late,
  last_late,
  half_late,
  straggler,
  exponential,
  workers,
  replay,
};

struct PatternRow {
  Pattern pattern;
  std::string_view name;
  std::string_view help;
};
std::span<const PatternRow> pattern_rows() noexcept;
std::string_view name_of(Pattern pattern) noexcept;

// How late `rank` comes to call `call`, from 0 (at once) to 1 (the whole skew). Not for `replay`.
double lateness(Pattern pattern, int rank, int ranks, std::uint64_t call, std::uint64_t seed) noexcept;

// A number in [0, 1) that depends on nothing but its arguments.
double uniform(std::uint64_t seed, std::uint64_t call, std::uint64_t rank) noexcept;

// Recorded arrivals: one call a line, one number of microseconds per rank, separated by blanks or commas; #
// begins a comment. The first to arrive of each call becomes 0.
struct Replay {
  int ranks = 0;
  std::vector<double> offsets_us;  // calls * ranks

  std::size_t calls() const noexcept { return ranks == 0 ? 0 : offsets_us.size() / static_cast<std::size_t>(ranks); }
  double largest_us() const noexcept;
  double offset_us(int rank, std::uint64_t call) const noexcept;  // starts over after the last call
};

// False if the text cannot be used for so many ranks; then `problem` says why.
bool parse_replay(std::string_view text, int ranks, Replay& replay, std::string& problem);

}  // namespace papaya::bench
