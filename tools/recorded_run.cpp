#include "tools/recorded_run.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>

#include "tools/command.hpp"

namespace papaya {
namespace {

namespace fs = std::filesystem;

constexpr auto quiet_time = std::chrono::seconds(2);
constexpr std::size_t bar_columns = 40;

bool has_records(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "rank-00000.pap", error);
}

// When the run in a folder was recorded; the folder's own time changes with every report written there.
fs::file_time_type time_of(const fs::path& folder) {
  std::error_code error;
  const auto time = fs::last_write_time(folder / "rank-00000.pap", error);
  return error ? fs::last_write_time(folder, error) : time;
}

// papaya.APP.NRANKS.ID
bool is_run_folder_name(const std::string& name) {
  return name.starts_with("papaya.") && std::count(name.begin(), name.end(), '.') >= 3;
}

// The newest run folder here, or here itself if it is one; empty if there is none.
std::string newest_run_folder() {
  fs::path newest;
  fs::file_time_type newest_time{};
  std::error_code error;
  for (fs::directory_iterator entry(".", error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    const fs::path name = entry->path().filename();
    if (!is_run_folder_name(name.string()) || !entry->is_directory(ignored)) continue;
    const auto time = time_of(name);
    // By name among equals: the choice must not depend on the order in the directory.
    if (newest.empty() || std::pair(time, name) > std::pair(newest_time, newest)) {
      newest = name;
      newest_time = time;
    }
  }
  if (newest.empty() && has_records(".")) return ".";
  return newest.string();
}

}  // namespace

ProgressBar::ProgressBar() : enabled_(isatty(STDERR_FILENO) == 1), begin_(std::chrono::steady_clock::now()) {}

void ProgressBar::show(std::size_t done, std::size_t total) {
  if (!enabled_ || total == 0 || std::chrono::steady_clock::now() - begin_ < quiet_time) return;
  const std::size_t filled = done * bar_columns / total;
  const std::size_t percent = done * 100 / total;
  if (shown_ && percent == percent_) return;
  std::fprintf(stderr, "\rreading [%s%s] %zu %%", std::string(filled, '#').c_str(),
               std::string(bar_columns - filled, '.').c_str(), percent);
  shown_ = true;
  percent_ = percent;
}

void ProgressBar::clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

bool load_recorded_run(const std::string& command, std::string& folder, report::Run& run, int& exit_code,
                       report::Extent extent) {
  exit_code = exit_usage;
  if (folder.empty()) {
    folder = newest_run_folder();
    if (folder.empty()) {
      std::cerr << command << ": there is no papaya.*.*.* folder here; name the folder of a run.\n";
      return false;
    }
  }
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    std::cerr << command << ": there is no folder " << folder << ".\n";
    return false;
  }
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  ProgressBar progress;
  run = report::load_run(
      folder, [&](std::size_t done, std::size_t total) { progress.show(done, total); }, extent);
  progress.clear();
  return true;
}

int exit_code_of(const std::string& command, const report::Run& run) {
  const bool is_whole = std::all_of(run.files.begin(), run.files.end(), [](const report::RankFile& file) {
    return static_cast<trace::Ending>(file.header.ending) == trace::Ending::finalized;
  });
  int exit_code = run.problems.empty() && run.missing.empty() && is_whole ? exit_fine : exit_partial;
  for (const report::Problem& problem : run.problems) {
    std::cerr << command << ": " << problem.sentence << "\n";
    if (problem.trouble == report::Trouble::other_version) exit_code = exit_version;
  }
  if (run.files.empty()) {
    std::cerr << command << ": no usable record in " << run.folder << ".\n";
    if (exit_code != exit_version) exit_code = exit_failed;
  }
  return exit_code;
}

bool write_output(const std::string& command, const std::string& path,
                  const std::function<void(std::ostream&)>& write) {
  if (path.empty()) {
    write(std::cout);
    std::cout.flush();
    return static_cast<bool>(std::cout);
  }
  std::error_code error;
  // What is no file (/dev/stdout, a pipe) cannot be replaced.
  const bool is_file = !fs::exists(path, error) || fs::is_regular_file(path, error);
  const std::string written = is_file ? path + "." + std::to_string(getpid()) + ".tmp" : path;
  std::ofstream file(written, std::ios::binary);
  write(file);
  file.close();
  bool good = static_cast<bool>(file);
  if (good && is_file) {
    fs::rename(written, path, error);
    good = !error;
  }
  if (good) return true;
  if (is_file) fs::remove(written, error);
  std::cerr << command << ": cannot write " << path << ".\n";
  return false;
}

}  // namespace papaya
