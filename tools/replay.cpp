// papaya replay: the arrivals of a recorded run as a pattern for `papaya bench --pattern replay:FILE`.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iostream>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/call_stream.hpp"
#include "profiler/analysis/communicator_names.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/read/units.hpp"
#include "tools/command.hpp"
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

// The calls of one communicator that all its ranks recorded.
struct Pattern {
  std::uint64_t communicator = 0;
  std::string name;
  std::uint64_t calls = 0;
  std::size_t ranks = 0;
  Collective collective{};  // of the first
};

class Calls {
 public:
  Calls(const report::Run& run, const Collective* wanted) : run_(run), clocks_(run), wanted_(wanted) {}

  // Of the communicators that are called so, or of all, the one with most calls; none: there is no such call.
  Pattern find(const std::string& communicator) const {
    std::map<std::uint64_t, std::string> names = report::communicator_names(run_);
    std::map<std::uint64_t, Pattern> patterns;
    for_each([&](const report::GroupCall& call) {
      Pattern& pattern = patterns[call.group->id];
      if (pattern.calls++ > 0) return;
      pattern.communicator = call.group->id;
      pattern.name = names[call.group->id];
      pattern.ranks = call.sightings.size();
      pattern.collective = static_cast<Collective>(call.sightings.front().collective);
    });
    Pattern most;
    for (const auto& [id, pattern] : patterns)
      if ((communicator.empty() || communicator == pattern.name || communicator == fmt::format("{:#x}", id)) &&
          pattern.calls > most.calls)
        most = pattern;
    return most;
  }

  void write(std::ostream& out, const Pattern& pattern) const {
    std::string name(name_of(pattern.collective));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    out << fmt::format("# Arrivals of {} ranks at {} calls on {}, a line for each call, in us after its first.\n",
                       pattern.ranks, report::count_text(pattern.calls), pattern.name);
    out << fmt::format("# {}\n# mpirun -n {} papaya bench {} --pattern replay:FILE\n", run_.folder, pattern.ranks,
                       name);
    std::vector<std::pair<std::uint32_t, double>> arrivals;  // by rank of the job
    for_each([&](const report::GroupCall& call) {
      if (call.group->id != pattern.communicator) return;
      arrivals.clear();
      double first_ns = call.sightings.front().arrival_ns;
      for (const report::Sighting& sighting : call.sightings) {
        arrivals.emplace_back(sighting.file, sighting.arrival_ns);
        first_ns = std::min(first_ns, sighting.arrival_ns);
      }
      std::sort(arrivals.begin(), arrivals.end());
      const char* separator = "";
      for (const auto& [file, arrival_ns] : arrivals) {
        out << fmt::format("{}{:.3f}", separator, (arrival_ns - first_ns) / 1e3);
        separator = " ";
      }
      out << "\n";
    });
  }

 private:
  template <class Body>
  void for_each(Body&& body) const {
    report::Groups groups(run_);
    report::CallStream(run_, clocks_, groups).read({}, [&](const report::GroupCall& call) {
      const std::uint8_t collective = call.sightings.front().collective;
      if (call.match == report::Match::complete &&
          (wanted_ == nullptr || collective == static_cast<std::uint8_t>(*wanted_)))
        body(call);
    });
  }

  const report::Run& run_;
  const report::Clocks clocks_;
  const Collective* wanted_;  // null: all
};

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
  const Calls calls(run, options.collective.empty() ? nullptr : &wanted);
  const Pattern pattern = calls.find(options.communicator);
  if (pattern.calls == 0) {
    std::cerr << "papaya replay: no such call was recorded by all its ranks in " << run.folder << ".\n";
    return exit_failed;
  }
  const bool good =
      write_output("papaya replay", options.output, [&](std::ostream& out) { calls.write(out, pattern); });
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
