// papaya replay: the arrivals of a recorded run as a pattern for `papaya bench --pattern replay:FILE`.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iostream>
#include <memory>
#include <ostream>
#include <string>

#include "profiler/read/units.hpp"
#include "tools/command.hpp"
#include "tools/recorded_calls.hpp"
#include "tools/recorded_run.hpp"
#include "tuning/selection.hpp"

namespace papaya {
namespace {

struct Options {
  std::string folder;
  std::string output;
  std::string collective;
  std::string communicator;
};

void write_head(std::ostream& out, const report::Run& run, const RecordedCalls::OnOne& calls) {
  std::string name(name_of(calls.collective));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  out << fmt::format("# Arrivals of {} ranks at {} calls on {}, a line for each call, in us after its first.\n",
                     calls.ranks, report::count_text(calls.calls), calls.name);
  out << fmt::format("# {}\n# mpirun -n {} papaya bench {} --pattern replay:FILE\n", run.folder, calls.ranks, name);
}

int replay_run(Options options) {
  Collective wanted{};
  if (!options.collective.empty() && !tuning::collective_of(options.collective, wanted)) {
    std::cerr << "papaya replay: no collective is called " << options.collective << ".\n";
    return exit_usage;
  }
  report::Run run;
  int exit_code = exit_fine;
  if (!load_recorded_run("papaya replay", options.folder, run, exit_code)) return exit_code;
  exit_code = exit_code_of("papaya replay", run);
  if (run.files.empty()) return exit_code;
  const RecordedCalls calls(run, options.collective.empty() ? nullptr : &wanted);
  const RecordedCalls::OnOne found = calls.find(options.communicator, 0);
  if (found.calls == 0) {
    std::cerr << "papaya replay: no such call was recorded by all its ranks in " << run.folder << ".\n";
    return exit_failed;
  }
  const bool good = write_output("papaya replay", options.output, [&](std::ostream& out) {
    write_head(out, run, found);
    calls.write(out, found);
  });
  return good ? exit_code : exit_failed;
}

}  // namespace

void add_replay(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand("replay", "Turn recorded arrivals into a pattern for papaya bench");
  auto options = std::make_shared<Options>();
  command->add_option("folder", options->folder, "Folder of the run (default: the newest papaya.*.*.* folder here)");
  command->add_option("-c,--collective", options->collective, "Only calls of this collective (default: all)");
  command->add_option("--communicator", options->communicator,
                      "Calls on this communicator, by name or id as in the report (default: the one with most calls)");
  command->add_option("-o,--output", options->output, "Write to this file instead of standard output");
  command->footer(
      "The benchmark must run with as many ranks as the communicator had:\n"
      "  papaya replay -c allreduce -o arrivals.txt && mpirun -n 4 papaya bench allreduce --pattern "
      "replay:arrivals.txt\n"
      "Exit codes: 0 fine; 1 nothing usable; 2 usage, no such folder; 3 the data is partial; 4 recorded by another "
      "version of papaya.");
  command->callback([options, &exit_code] { exit_code = replay_run(*options); });
}

}  // namespace papaya
