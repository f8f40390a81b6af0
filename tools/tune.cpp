// papaya tune: what the benchmark measures on a machine becomes its tuning file.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tools/bench_program.hpp"
#include "tools/command.hpp"
#include "tools/recorded_run.hpp"
#include "tools/tune_options.hpp"
#include "tools/tuned_rules.hpp"

namespace papaya {

namespace {

int fail(const std::string& sentence) {
  fmt::print(stderr, "papaya tune: {}\n", sentence);
  return exit_failed;
}

int run(const TuneOptions& options) {
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

void add_tune(CLI::App& app, const std::vector<std::string>& words, int& exit_code) {
  CLI::App* const command =
      app.add_subcommand("tune",
                         "measure MPI's collectives and papaya's, and make a tuning file: mpirun -n N papaya "
                         "tune; or make one of what papaya bench measured");
  auto options = std::make_shared<TuneOptions>();
  add_options(*command, *options);
  command->callback([options, words, &exit_code] {
    std::string problem;
    if (!finish(*options, problem)) {
      exit_code = fail_once("papaya tune", exit_usage, problem);
      return;
    }
    // Open MPI reads it in MPI_Init. Without a file of rules it chooses as ever.
    if (options->natives) setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1", 0);
    exit_code = options->files.empty() ? become_bench_program("papaya tune", options->mpi, words, "papaya tune", true)
                                       : run(*options);
  });
}

}  // namespace papaya
