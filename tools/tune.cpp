// papaya tune: what the benchmark measured on a machine becomes its tuning file.
#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tools/command.hpp"
#include "tools/recorded_run.hpp"
#include "tools/tuned_rules.hpp"

namespace papaya {

namespace {

struct Options {
  std::vector<std::string> files;
  std::string output;
};

int fail(const std::string& sentence) {
  fmt::print(stderr, "papaya tune: {}\n", sentence);
  return exit_failed;
}

int run(const Options& options) {
  std::vector<std::string> texts;
  for (const std::string& path : options.files) {
    std::ifstream file(path);
    if (!file) return fail(path + " cannot be read.");
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  Tuned tuned;
  std::string problem;
  if (!tuned_rules(texts, options.files, tuned, problem)) return fail(problem);
  for (const std::string& note : tuned.notes) fmt::print(stderr, "papaya tune: {}.\n", note);
  if (!options.output.empty())
    for (const std::string& choice : tuned.choices) fmt::print("{}\n", choice);
  return write_output("papaya tune", options.output, [&](std::ostream& out) { out << tuned.json; }) ? exit_fine
                                                                                                    : exit_failed;
}

}  // namespace

void add_tune(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand("tune", "Make a tuning file of what papaya bench measured");
  auto options = std::make_shared<Options>();
  command->add_option("files", options->files, "What papaya bench wrote with --json, of any ranks and patterns")
      ->required();
  command->add_option("-o,--output", options->output, "Write to this file, and what was chosen to standard output");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace papaya
