// The folder of a recorded run as a command names it, and where its output goes.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>

#include "profiler/report/report.hpp"

namespace papaya {

// A bar on standard error once reading takes long, for a person only.
class ProgressBar {
 public:
  ProgressBar();
  void show(std::size_t done, std::size_t total);
  void clear();

 private:
  const bool enabled_;
  const std::chrono::steady_clock::time_point begin_;
  bool shown_ = false;
  std::size_t percent_ = 0;
};

// Reads the run in `folder`, with a bar on standard error once that takes long; without a name, the newest
// papaya.*.*.* folder here, whose name is left in `folder`. False after a sentence of `command`, with the exit code.
bool load_recorded_run(const std::string& command, std::string& folder, report::Run& run, int& exit_code,
                       report::Extent extent = report::Extent::streamed_all);

// The exit code that says how much of the run could be read; says on standard error what could not.
int exit_code_of(const std::string& command, const report::Run& run);

// Has `write` fill the file, at once (it exists whole or not at all), or standard output if `path` is empty. False
// after a sentence of `command`.
bool write_output(const std::string& command, const std::string& path, const std::function<void(std::ostream&)>& write);

}  // namespace papaya
