// papaya report: the report of a run from its per-rank files.
#include "profiler/report.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "tools/command.hpp"
#include "tools/symbols.hpp"

namespace papaya {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto quiet_time = std::chrono::seconds(2);
constexpr std::size_t bar_columns = 40;

struct Options {
  std::string folder;
  std::string output;
  bool json = false;
};

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

// A bar on standard error once loading takes long, for a person only.
class ProgressBar {
 public:
  void show(std::size_t done, std::size_t total) {
    if (!enabled_ || total == 0 || Clock::now() - begin_ < quiet_time) return;
    const std::size_t filled = done * bar_columns / total;
    std::fprintf(stderr, "\rreading [%s%s] %zu of %zu ranks", std::string(filled, '#').c_str(),
                 std::string(bar_columns - filled, '.').c_str(), done, total);
    shown_ = true;
  }
  void clear() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }

 private:
  const bool enabled_ = isatty(STDERR_FILENO) == 1;
  const Clock::time_point begin_ = Clock::now();
  bool shown_ = false;
};

int exit_code_of(const report::Analysis& analysis) {
  if (analysis.other_version) return exit_version;
  if (!analysis.usable) return exit_failed;
  return analysis.partial ? exit_partial : exit_fine;
}

int report_run(Options options) {
  if (options.folder.empty()) {
    options.folder = newest_run_folder();
    if (options.folder.empty()) {
      std::cerr << "papaya report: there is no papaya.*.*.* folder here; name the folder of a run.\n";
      return exit_usage;
    }
  }
  std::error_code error;
  if (!fs::is_directory(options.folder, error)) {
    std::cerr << "papaya report: there is no folder " << options.folder << ".\n";
    return exit_usage;
  }
  while (options.folder.size() > 1 && options.folder.ends_with('/')) options.folder.pop_back();

  ProgressBar progress;
  const report::Run run = report::load_run(
      options.folder, [&](std::size_t done, std::size_t total) { progress.show(done, total); });
  progress.clear();
  report::Analysis analysis = report::analyse(run);
  symbolise(analysis);
  const int exit_code = exit_code_of(analysis);
  if (!analysis.usable) {
    std::cerr << "papaya report: no usable record in " << options.folder << ".\n";
    if (analysis.notes.empty()) std::cerr << "  It holds no rank-NNNNN.pap file.\n";
    for (const std::string& note : analysis.notes) std::cerr << "  " << note << "\n";
    return exit_code;
  }
  const std::string page = options.json ? report::to_json(analysis) : report::to_text(analysis);
  if (options.output.empty()) {
    std::cout << page << std::flush;
    return std::cout ? exit_code : exit_failed;
  }
  std::ofstream file(options.output, std::ios::binary);
  file << page;
  file.close();
  if (!file) {
    std::cerr << "papaya report: cannot write " << options.output << ".\n";
    return exit_failed;
  }
  return exit_code;
}

}  // namespace

void add_report(CLI::App& app, int& exit_code) {
  CLI::App* const command =
      app.add_subcommand("report", "Show who arrived late at which collective in a recorded run");
  auto options = std::make_shared<Options>();
  command->add_option("folder", options->folder,
                      "Folder of the run (default: the newest papaya.*.*.* folder here)");
  command->add_flag("--json", options->json, "Print JSON instead of text");
  command->add_option("-o,--output", options->output, "Write to this file instead of standard output");
  command->footer(
      "Exit codes: 0 fine; 1 nothing usable; 2 usage, no such folder; 3 the data is partial (records missing "
      "or "
      "damaged, or the job did not reach MPI_Finalize); 4 recorded by another version of papaya.");
  command->callback([options, &exit_code] { exit_code = report_run(*options); });
}

}  // namespace papaya
