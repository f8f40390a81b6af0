#include "base/settings.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace papaya {

namespace {

using Kind = VariableRow::Kind;

constexpr std::string_view selection_values = "auto|native|NAME[:param=value,...]|0-4K:NAME,4K-:NAME";
constexpr std::string_view nonblocking_values = "native|NAME[:param=value,...]|0-4K:NAME,4K-:NAME";

// In the order of enum Variable.
constexpr std::array<VariableRow, variable_count> rows = {{
    {"PAPAYA_DISABLE", Kind::flag, "0|1", "0", "1: pass every call through, record nothing"},
    {"PAPAYA_ALLREDUCE", Kind::selection, selection_values, "auto", "algorithm of MPI_Allreduce"},
    {"PAPAYA_REDUCE", Kind::selection, selection_values, "auto", "algorithm of MPI_Reduce"},
    {"PAPAYA_BCAST", Kind::selection, selection_values, "auto", "algorithm of MPI_Bcast"},
    {"PAPAYA_ALLTOALL", Kind::selection, selection_values, "auto", "algorithm of MPI_Alltoall and MPI_Alltoallv"},
    {"PAPAYA_BARRIER", Kind::selection, selection_values, "auto", "algorithm of MPI_Barrier"},
    {"PAPAYA_ALLGATHER", Kind::selection, selection_values, "auto", "algorithm of MPI_Allgather"},
    {"PAPAYA_IALLREDUCE", Kind::selection, nonblocking_values, "native", "algorithm of MPI_Iallreduce"},
    {"PAPAYA_IBCAST", Kind::selection, nonblocking_values, "native", "algorithm of MPI_Ibcast"},
    {"PAPAYA_IBARRIER", Kind::selection, nonblocking_values, "native", "algorithm of MPI_Ibarrier"},
    {"PAPAYA_PROFILE", Kind::choice, "off|summary|trace", "summary",
     "what to record: nothing, the last 32768 calls of each rank, or all of them"},
    {"PAPAYA_OUTPUT", Kind::text, "FOLDER", "", "where the records go; empty: papaya.APP.NRANKS.ID"},
    {"PAPAYA_TUNING", Kind::text, "FILE", "",
     "selection rules, one 'COLLECTIVE SELECTION' a line; empty: the built-in table"},
    {"PAPAYA_ORDER", Kind::choice, "rank|arrival", "rank",
     "reduction order: by rank (same bits in every run) or by arrival"},
    {"PAPAYA_WAIT", Kind::choice, "auto|spin|yield|block", "auto", "how a rank waits inside papaya's algorithms"},
    {"PAPAYA_SHM_LIMIT", Kind::bytes, "BYTES", "64M", "shared memory papaya may use on a node", 0,
     std::numeric_limits<std::int64_t>::max()},
    {"PAPAYA_TRANSPORT", Kind::choice, "auto|mpi|ucx", "auto",
     "transport between nodes: mpi, its messages; ucx, UCX's operations; auto is ucx where MPI uses UCX, else mpi"},
    {"PAPAYA_NODE_SIZE", Kind::integer, "N", "0", "for tests: treat every N ranks of a node as one node", 0, 1 << 20},
    {"PAPAYA_VERIFY", Kind::integer, "N", "0", "every Nth replaced call also runs natively and is compared", 0,
     std::numeric_limits<std::int32_t>::max()},
    {"PAPAYA_STALL_SECONDS", Kind::integer, "N", "60",
     "say which ranks are missing after so long in one collective; 0: only when SIGUSR1 asks", 0,
     std::numeric_limits<std::int32_t>::max()},
    {"PAPAYA_CALLSITES", Kind::integer, "0 to 16", "1",
     "stack frames kept of each call for the report; above 1 they cost 0.2 to 1 us a call", 0, 16},
    {"PAPAYA_TRACE_LIMIT", Kind::bytes, "BYTES", "256M",
     "PAPAYA_PROFILE=trace: compressed bytes a rank may write beside its last million calls; what comes between is "
     "dropped",
     0, std::numeric_limits<std::int64_t>::max()},
    {"PAPAYA_RANKS", Kind::ranks, "all|LIST", "all",
     "ranks of MPI_COMM_WORLD that record, 0-3,8 say, or 0-1023:16, every 16th; rank 0 always does"},
    {"PAPAYA_LOG", Kind::choice, "error|warn|info|debug", "warn", "what is said on standard error"},
}};

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
    case Kind::ranks:
      return RankList().parse(value) ? "" : "must be all, or ranks such as 0-3,8 or 0-1023:16";
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
      warnings.push_back(std::string(name) + "=" + std::string(value) + ": " + problem + "; using the default, " +
                         std::string(row->fallback) + ".");
  }
  return settings;
}

std::int64_t Settings::number(Variable variable) const noexcept {
  std::int64_t value = 0;
  if (row_of(variable).kind == Kind::bytes)
    parse_bytes(text(variable), value);
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

bool parse_bytes(std::string_view text, std::int64_t& bytes) noexcept {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return false;
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  int shift = 0;
  if (!unit.empty()) {
    constexpr std::string_view letters = "KMGT";
    const char letter = unit[0] >= 'a' && unit[0] <= 'z' ? static_cast<char>(unit[0] - 'a' + 'A') : unit[0];
    const std::size_t place = letters.find(letter);
    if (place != std::string_view::npos) {
      shift = 10 * (static_cast<int>(place) + 1);
      unit.remove_prefix(1);
    }
    if (unit != "" && unit != "B" && unit != "iB" && unit != "b") return false;
  }
  if (value > (std::numeric_limits<std::int64_t>::max() >> shift)) return false;
  bytes = value << shift;
  return true;
}

}  // namespace papaya
