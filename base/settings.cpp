#include "base/settings.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/program_filter.hpp"

namespace papaya {

namespace {

using Kind = VariableRow::Kind;

constexpr std::string_view selection_values = "auto|native|NAME[:param=value,...]|0-4K:NAME,4K-:NAME";
constexpr std::string_view nonblocking_values = "native|NAME[:param=value,...]|0-4K:NAME,4K-:NAME";

constexpr std::int64_t any_count = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t any_size = std::numeric_limits<std::int64_t>::max();

constexpr std::array<VariableRow, variable_count> rows = {{
#define PAPAYA_VARIABLE(enumerator, name, kind, ...) {name, Kind::kind, __VA_ARGS__},
#include "base/variables.def"
#undef PAPAYA_VARIABLE
}};

// PAPAYA_STALL_SECONDS is Variable::stall_seconds.
constexpr bool is_named_after(std::string_view name, std::string_view enumerator) {
  constexpr std::string_view prefix = "PAPAYA_";
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  return std::equal(name.begin(), name.end(), enumerator.begin(), enumerator.end(), [](char upper, char lower) {
    return upper == (lower >= 'a' && lower <= 'z' ? static_cast<char>(lower - 'a' + 'A') : lower);
  });
}
#define PAPAYA_VARIABLE(enumerator, name, ...) \
  static_assert(is_named_after(name, #enumerator), name " and its enumerator differ");
#include "base/variables.def"
#undef PAPAYA_VARIABLE

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

bool parse_integer(std::string_view text, std::int64_t& value) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

std::vector<std::string_view> words_of(std::string_view choice) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t bar = choice.find('|');
    words.push_back(choice.substr(0, bar));
    if (bar == std::string_view::npos) return words;
    choice.remove_prefix(bar + 1);
  }
}

// Empty if the value is good, else what is wrong with it, to follow "NAME=VALUE: ".
std::string problem_with(const VariableRow& row, std::string_view value) {
  std::int64_t number = 0;
  switch (row.kind) {
    case Kind::flag:
      return value == "0" || value == "1" ? "" : "must be 0 or 1";
    case Kind::choice: {
      const auto words = words_of(row.values);
      if (std::find(words.begin(), words.end(), value) != words.end()) return "";
      const std::string_view near = nearest_name(value, words);
      std::string all(row.values);
      std::replace(all.begin(), all.end(), '|', ' ');
      return near.empty() ? "must be one of: " + all : "did you mean " + std::string(near) + "? (one of: " + all + ")";
    }
    case Kind::integer:
      if (parse_integer(value, number) && number >= row.lowest && number <= row.highest) return "";
      return "must be a whole number from " + std::to_string(row.lowest) + " to " + std::to_string(row.highest);
    case Kind::bytes:
      return parse_bytes(value, number) ? "" : "must be a size such as 64M";
    case Kind::share:
      return parse_share(value, number) ? "" : "must be off, exact, or a percentage such as 1% or 0.5%";
    case Kind::ranks:
      return RankList().parse(value) ? "" : "must be all, or ranks such as 0-3,8 or 0-1023:16";
    case Kind::expression:
      return program_filter::is_expression(std::string(value).c_str()) ? "" : "must be an extended regular expression";
    case Kind::text:
    case Kind::selection:
      return "";
  }
  return "";
}

}  // namespace

std::span<const VariableRow, variable_count> variable_rows() noexcept {
  return rows;
}
const VariableRow& row_of(Variable variable) noexcept {
  return rows[static_cast<std::size_t>(variable)];
}

Settings::Settings() {
  for (std::size_t i = 0; i < variable_count; ++i) values_[i] = rows[i].fallback;
}

Settings Settings::from_environment(const char* const* environment, std::vector<std::string>& warnings) {
  Settings settings;
  constexpr std::string_view prefix = "PAPAYA_";
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    if (entry.substr(0, prefix.size()) != prefix) continue;
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    const std::string_view value = entry.substr(equals + 1);
    if (name == "PAPAYA_RUN_PID") continue;  // between `papaya run` and libpapaya.so, not a setting
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const VariableRow& r) { return r.name == name; });
    if (row == rows.end()) {
      std::vector<std::string_view> names;
      for (const VariableRow& r : rows) names.push_back(r.name);
      const std::string_view near = nearest_name(name, names);
      warnings.push_back(
          "unknown variable " + std::string(name) +
          (near.empty() ? " (papaya info --env lists them)" : "; did you mean " + std::string(near) + "?") +
          " It is ignored.");
      continue;
    }
    if (value.empty()) continue;  // set but empty means not set
    const std::string problem = problem_with(*row, value);
    if (problem.empty())
      settings.values_[static_cast<std::size_t>(row - rows.begin())] = value;
    else
      warnings.push_back(
          std::string(name) + "=" + std::string(value) + ": " + problem + "; " +
          (row->fallback.empty() ? "it is ignored." : "using the default, " + std::string(row->fallback) + "."));
  }
  return settings;
}

std::int64_t Settings::number(Variable variable) const noexcept {
  std::int64_t value = 0;
  if (row_of(variable).kind == Kind::bytes)
    parse_bytes(text(variable), value);
  else if (row_of(variable).kind == Kind::share)
    parse_share(text(variable), value);
  else
    parse_integer(text(variable), value);
  return value;
}

bool Settings::is_default(Variable variable) const noexcept {
  return text(variable) == row_of(variable).fallback;
}
void Settings::reset(Variable variable) {
  set(variable, row_of(variable).fallback);
}

std::string Settings::serialize() const {
  std::string text;
  for (std::size_t i = 0; i < variable_count; ++i) {
    text += rows[i].name;
    text += '=';
    for (const char c : values_[i]) text += c == '\n' ? ' ' : c;
    text += '\n';
  }
  return text;
}

Settings Settings::deserialize(std::string_view text) {
  Settings settings;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    for (std::size_t i = 0; i < variable_count; ++i)
      if (rows[i].name == line.substr(0, equals)) settings.values_[i] = line.substr(equals + 1);
  }
  return settings;
}

std::string_view nearest_name(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::size_t shortest = word.size() / 2 + 1;  // further away is another word, not a slip
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < shortest) {
      shortest = distance;
      best = candidate;
    }
  }
  return best;
}

bool RankList::parse(std::string_view text) {
  ranges_.clear();
  if (text == "all") {
    ranges_.push_back({0, std::numeric_limits<std::int64_t>::max(), 1});
    return true;
  }
  const auto number = [&text](std::int64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return error == std::errc{} && value >= 0;
  };
  const auto passed = [&text](char mark) {
    if (!text.starts_with(mark)) return false;
    text.remove_prefix(1);
    return true;
  };
  do {
    Range range{0, 0, 1};
    if (!number(range.first)) return false;
    range.last = range.first;
    if (passed('-') && (!number(range.last) || range.last < range.first)) return false;
    if (passed(':') && (!number(range.step) || range.step < 1)) return false;
    ranges_.push_back(range);
  } while (passed(','));
  return text.empty();
}

bool RankList::contains(std::int64_t rank) const noexcept {
  return std::any_of(ranges_.begin(), ranges_.end(), [rank](const Range& range) {
    return rank >= range.first && rank <= range.last && (rank - range.first) % range.step == 0;
  });
}

bool parse_share(std::string_view text, std::int64_t& millionths) noexcept {
  millionths = 0;
  if (text == "off") return true;
  if (text == "exact") text = "1%";
  double percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc{} || rest != "%" || !(percent >= 0 && percent <= 100)) return false;
  millionths = std::llround(percent * 10'000);
  return true;
}

bool parse_bytes(std::string_view text, std::int64_t& bytes) noexcept {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return false;
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  int shift = 0;
  if (!unit.empty()) {
    constexpr std::string_view letters = "KMGT";
    const char letter = unit[0] >= 'a' && unit[0] <= 'z' ? static_cast<char>(unit[0] - 'a' + 'A') : unit[0];
    const std::size_t position = letters.find(letter);
    if (position != std::string_view::npos) {
      shift = 10 * (static_cast<int>(position) + 1);
      unit.remove_prefix(1);
    }
    if (!unit.empty() && unit != "B" && unit != "iB" && unit != "b") return false;
  }
  if (value > (std::numeric_limits<std::int64_t>::max() >> shift)) return false;
  bytes = value << shift;
  return true;
}

}  // namespace papaya
