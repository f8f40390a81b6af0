// papaya export: rules of a tuning file in the form that an MPI library itself reads.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tools/command.hpp"
#include "tools/openmpi_rules.hpp"
#include "tools/recorded_run.hpp"
#include "tuning/load.hpp"

namespace papaya {

namespace {

struct Options {
  std::string format;
  std::string file;
  std::string output;
  ExportFacts facts;
  std::string arrivals = "any";
};

int fail(const std::string& sentence) {
  fmt::print(stderr, "papaya export: {}\n", sentence);
  return exit_failed;
}

int run(Options& options) {
  std::string problem;
  const std::string text = tuning::load(options.file, problem);
  if (!problem.empty()) return fail(options.file + " " + problem + ".");
  if (!tuning::is_json(text))
    return fail(options.file + " is no tuning file in JSON, which alone knows algorithms of MPI.");
  std::vector<std::string> warnings;
  const tuning::TuningFile file = tuning::read_tuning_file(text, warnings);
  for (const std::string& warning : warnings) fmt::print(stderr, "papaya: {}\n", warning);
  const auto arrivals = std::find(tuning::arrival_names.begin(), tuning::arrival_names.end(), options.arrivals);
  options.facts.arrivals = static_cast<tuning::ArrivalClass>(arrivals - tuning::arrival_names.begin());
  const auto format = options.format == "openmpi" ? OpenMpiFormat::text : OpenMpiFormat::json;
  const std::string rules = openmpi_rules(file, options.facts, format);
  if (rules.empty())
    return fail("no rule for such communicators and arrivals says which of Open MPI's algorithms is to be used.");
  if (!write_output("papaya export", options.output, [&](std::ostream& out) { out << rules; })) return exit_failed;
  return warnings.empty() ? exit_fine : exit_partial;
}

}  // namespace

void add_export(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand("export", "Write what a tuning file says for Open MPI itself");
  auto options = std::make_shared<Options>();
  command->add_option("format", options->format, "openmpi: rules of any version; openmpi-json: of version 6")
      ->required()
      ->check(CLI::IsMember({"openmpi", "openmpi-json"}));
  command->add_option("file", options->file, "Tuning file in JSON, whose rules with native name its algorithms")
      ->required();
  command->add_option("--nodes", options->facts.nodes, "That communicators are on (default: 1)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  command->add_flag("--oversubscribed", options->facts.oversubscribed, "There are more ranks than cores");
  const std::vector<std::string> classes(tuning::arrival_names.begin(), tuning::arrival_names.end());
  command->add_option("--arrivals", options->arrivals, "The program's arrival pattern (default: any)")
      ->check(CLI::IsMember(classes))
      ->type_name("CLASS");
  command->add_option("-o,--output", options->output, "Write to this file instead of standard output");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace papaya
