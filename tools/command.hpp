// The papaya command: one file per subcommand, each of which adds itself here.
#pragma once

#include <CLI/CLI.hpp>
#include <limits>
#include <string>
#include <vector>

namespace papaya {

// Exit codes of the command.
inline constexpr int exit_fine = 0;
inline constexpr int exit_failed = 1;  // a check failed, nothing usable
inline constexpr int exit_usage = 2;
inline constexpr int exit_partial = 3;  // the data is incomplete
inline constexpr int exit_version = 4;  // made by another version of papaya

// Of an option that counts something. CLI::PositiveNumber answers with the range of a double.
inline CLI::Range at_least_one() {
  return {1, std::numeric_limits<int>::max()};
}

// Each adds its subcommand to `app`; when that is the one called, its outcome is left in `exit_code`, which
// must outlive the parse.
void add_run(CLI::App& app, int& exit_code);
void add_report(CLI::App& app, int& exit_code);
void add_top(CLI::App& app, int& exit_code);
void add_trace(CLI::App& app, int& exit_code);
void add_replay(CLI::App& app, int& exit_code);
void add_compare(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_info(CLI::App& app, int& exit_code);
void add_export(CLI::App& app, int& exit_code);
// `words` are all of the command line's, for the measuring program.
void add_bench(CLI::App& app, const std::vector<std::string>& words, int& exit_code);
void add_tune(CLI::App& app, const std::vector<std::string>& words, int& exit_code);

}  // namespace papaya
