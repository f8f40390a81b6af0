#include "profiler/read/read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/settings.hpp"
#include "profiler/read/file_source.hpp"
#include "profiler/read/read_approx.hpp"
#include "profiler/read/read_record.hpp"
#include "profiler/read/read_spill.hpp"
#include "profiler/read/read_weak.hpp"
#include "profiler/read/same_run.hpp"

namespace papaya::report {
namespace {

constexpr std::int32_t most_listed_ranks = 1 << 24;  // looked at one by one
constexpr std::uint64_t largest_settings_bytes = 1 << 20;

std::optional<std::int64_t> rank_in_name(std::string_view name) {
  constexpr std::string_view prefix = "rank-";
  constexpr std::string_view suffix = ".pap";
  if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.size() <= prefix.size() + suffix.size()) return {};
  const std::string_view digits = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  std::int64_t rank = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  if (error != std::errc{} || end != digits.data() + digits.size()) return {};
  return rank;
}

// Lines NAME=value. A name that this papaya does not know has no default here and so counts as set.
std::vector<Setting> read_settings(const std::string& path) {
  const FileSource source(path);
  std::string text(std::min(source.bytes(), largest_settings_bytes), '\0');
  std::vector<Setting> settings;
  if (!source.read(0, text.data(), text.size())) return settings;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t line_end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, line_end);
    rest.remove_prefix(std::min(line_end + 1, rest.size()));
    const std::size_t equals = line.find('=');
    if (line.starts_with('#') || equals == std::string_view::npos || equals == 0) continue;
    const std::string_view name = line.substr(0, equals);
    const std::string_view value = line.substr(equals + 1);
    const auto rows = variable_rows();
    const bool is_default = std::any_of(
        rows.begin(), rows.end(), [&](const VariableRow& row) { return row.name == name && row.fallback == value; });
    settings.push_back({clean_text(name), clean_text(value), is_default});
  }
  return settings;
}

// A file beside the rank's record, if there is one.
template <class Add>
void add_beside(Run& run, const std::string& folder, const std::string& name, Add&& add) {
  if (std::error_code ignored; !std::filesystem::exists(folder + "/" + name, ignored)) return;
  const FileSource source(folder + "/" + name);
  if (source.error().empty())
    add(source);
  else
    add_problem(run, Trouble::unreadable, name, fmt::format("cannot be read: {}", source.error()));
}

Run load(const std::string& folder, const Progress& progress, Extent extent) {
  Run run;
  run.folder = folder;
  std::vector<std::pair<std::int64_t, std::string>> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (const auto rank = rank_in_name(name)) names.emplace_back(*rank, std::move(name));
  }
  if (error) {
    run.problems.push_back(
        {Trouble::unreadable, folder, fmt::format("{} cannot be read: {}.", folder, error.message())});
    return run;
  }
  std::sort(names.begin(), names.end());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& [rank, name] = names[i];
    const FileSource source(folder + "/" + name);
    if (!source.error().empty()) {
      add_problem(run, Trouble::unreadable, name, fmt::format("cannot be read: {}", source.error()));
    } else {
      const bool is_read = add_record(run, name, source, extent);
      if (is_read && is_streamed(extent)) run.files.back().ring_path = folder + "/" + name;
      if (is_read && run.files.back().header.rank != rank) {
        add_problem(run, Trouble::other_run, name,
                    fmt::format("holds the record of rank {}: it was renamed or damaged, and is left out",
                                run.files.back().header.rank));
        run.files.pop_back();
      } else if (is_read && extent != Extent::latest) {
        add_beside(run, folder, name + "z",
                   [&](const Source& spilled) { add_spilled(run, name + "z", spilled, extent); });
        add_beside(run, folder, name + "w", [&](const Source& weak) { add_weak(run, name + "w", weak); });
        add_beside(run, folder, name + "x", [&](const Source& approx) { add_approx(run, name + "x", approx); });
      }
    }
    if (progress) progress(i + 1, names.size());
  }
  run.settings = read_settings(folder + "/papaya.cfg");
  finish_run(run);
  return run;
}

}  // namespace

bool MemorySource::read(std::uint64_t offset, void* to, std::size_t count) const {
  if (offset > data_.size() || count > data_.size() - offset) return false;
  if (count > 0) std::memcpy(to, data_.data() + offset, count);
  return true;
}

bool add_record(Run& run, const std::string& name, const Source& source, Extent extent) {
  try {
    run.files.push_back(read_record(run, name, source, extent));
    return true;
  } catch (const Rejected& rejected) {
    add_problem(run, rejected.trouble, name, rejected.reason);
    return false;
  }
}

void add_spilled(Run& run, const std::string& name, const Source& source, Extent extent) {
  RankFile& file = run.files.back();
  SpillReader reader(source, file, file.overwritten_events);
  std::vector<trace::Event> events;
  if (extent == Extent::all) {
    for (std::span<const trace::Event> block = reader.next(); !block.empty(); block = reader.next())
      events.insert(events.end(), block.begin(), block.end());
    events.insert(events.end(), file.events.begin(), file.events.end());
    file.events = std::move(events);
  } else if (extent == Extent::streamed_all) {
    // Read once for what is missing in it, which is wanted before its events are.
    while (!reader.next().empty()) {
    }
  } else {
    reader.leave_unread();
  }
  const SpillFacts& spilled = reader.facts();
  if (!spilled.problem.empty()) add_problem(run, spilled.trouble, name, spilled.problem);
  file.gaps = spilled.gaps;
  file.spilled_events = spilled.kept;
  if (spilled.unread > 0) {  // all of it a gap before what is there
    const std::uint64_t overwritten = file.overwritten_events;
    file.gaps.assign(1, {0, overwritten});
  } else {
    file.overwritten_events = 0;
    for (const Gap& gap : file.gaps) file.overwritten_events += gap.events;
  }
  file.unread_events = spilled.unread;
  file.skipped_events += spilled.skipped;
  file.is_spilled = true;
  file.spill_state = static_cast<trace::spill::State>(spilled.header.state);
  file.spill_error = spilled.header.error;
  file.spill_limit = spilled.header.limit_bytes;
}

void add_weak(Run& run, const std::string& name, const Source& source) {
  if (const std::string problem = read_weak(source, run.files.back()); !problem.empty())
    add_problem(run, Trouble::damaged, name, problem);
}

void add_approx(Run& run, const std::string& name, const Source& source) {
  if (const std::string problem = read_approx(source, run.files.back()); !problem.empty())
    add_problem(run, Trouble::damaged, name, problem);
}

void finish_run(Run& run) {
  std::stable_sort(run.files.begin(), run.files.end(),
                   [](const RankFile& a, const RankFile& b) { return a.header.rank < b.header.rank; });
  if (run.files.empty()) return;
  remove_files_of_other_runs(run);
  remove_second_records(run);
  RankList wanted;
  const auto setting =
      std::find_if(run.settings.begin(), run.settings.end(), [](const Setting& s) { return s.name == "PAPAYA_RANKS"; });
  const bool has_list = setting != run.settings.end() && setting->value != "all" && wanted.parse(setting->value) &&
                        run.ranks <= most_listed_ranks;
  std::int32_t next = 0;
  const auto note_gap = [&](std::int32_t until) {
    if (!has_list && next < until) {
      run.missing.push_back({next, until - 1});
      run.missing_ranks += static_cast<std::uint64_t>(until - next);
      return;
    }
    for (; next < until; ++next) {
      if (!wanted.contains(next)) {
        ++run.unwanted_ranks;
        continue;
      }
      if (run.missing.empty() || run.missing.back().last + 1 != next) run.missing.push_back({next, next});
      run.missing.back().last = next;
      ++run.missing_ranks;
    }
  };
  for (const auto& file : run.files) {
    note_gap(file.header.rank);
    next = file.header.rank + 1;
  }
  note_gap(run.ranks);
}

Run load_run(const std::string& folder, const Progress& progress, Extent extent) noexcept {
  try {
    return load(folder, progress, extent);
  } catch (...) {  // out of memory: there is no text to be had either, so the short one
    Run run;
    run.problems.push_back({Trouble::unreadable, {}, "Not enough memory."});
    return run;
  }
}

}  // namespace papaya::report
