// The environment: one table of variables (base/variables.def), one parser. A value that cannot be used gives one
// warning and the default; nothing a user sets can stop a job. Rank 0's values are sent to all ranks as text
// (serialize, deserialize).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace papaya {

enum class Variable : std::uint8_t {
#define PAPAYA_VARIABLE(enumerator, ...) enumerator,
#include "base/variables.def"
#undef PAPAYA_VARIABLE
};
inline constexpr auto variables = std::to_array({
#define PAPAYA_VARIABLE(enumerator, ...) Variable::enumerator,
#include "base/variables.def"
#undef PAPAYA_VARIABLE
});
inline constexpr std::size_t variable_count = variables.size();

struct VariableRow {
  enum class Kind : std::uint8_t { flag, choice, integer, bytes, ranks, share, expression, text, selection };
  std::string_view name;
  Kind kind;
  std::string_view values;  // for people; for a choice the words themselves, separated by '|'
  std::string_view fallback;
  std::string_view help;
  std::int64_t lowest = 0;  // integers only
  std::int64_t highest = 0;
};

std::span<const VariableRow, variable_count> variable_rows() noexcept;
const VariableRow& row_of(Variable variable) noexcept;

class Settings {
 public:
  Settings();  // all defaults

  // Reads NAME=VALUE strings (environ). Appends one sentence per problem to `warnings`. Selections (PAPAYA_ALLREDUCE
  // and its like) are checked by tuning, which knows the algorithms.
  static Settings from_environment(const char* const* environment, std::vector<std::string>& warnings);

  std::string_view text(Variable variable) const noexcept { return values_[static_cast<std::size_t>(variable)]; }
  std::int64_t number(Variable variable) const noexcept;  // flag, integer, bytes and share rows (in millionths)
  bool is_default(Variable variable) const noexcept;
  void reset(Variable variable);  // back to the default
  void set(Variable variable, std::string_view value) { values_[static_cast<std::size_t>(variable)] = value; }

  // One NAME=VALUE a line, every variable, as in papaya.cfg.
  std::string serialize() const;
  static Settings deserialize(std::string_view text);

 private:
  std::array<std::string, variable_count> values_;
};

// The candidate with the smallest edit distance to `word`; empty if none is near enough to be what was meant.
std::string_view nearest_name(std::string_view word, std::span<const std::string_view> candidates);

// Ranks as a user lists them: "all", "0-3,8", "0-1023:16" (every 16th).
class RankList {
 public:
  // False if the text is no such list.
  bool parse(std::string_view text);
  bool contains(std::int64_t rank) const noexcept;

 private:
  struct Range {
    std::int64_t first;
    std::int64_t last;
    std::int64_t step;
  };
  std::vector<Range> ranges_;
};

// "off" or a percentage such as "1%" or "0.5%", in millionths; false if it is neither.
bool parse_share(std::string_view text, std::int64_t& millionths) noexcept;

// "64", "64K", "64M", "1G", also "64KiB"; false if it is not a size.
bool parse_bytes(std::string_view text, std::int64_t& bytes) noexcept;

}  // namespace papaya
