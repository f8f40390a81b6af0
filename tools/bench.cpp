// papaya bench: finds out which MPI launched this process and becomes the measuring program for it, under the
// library.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tools/bench/combine.hpp"
#include "tools/bench/kernels.hpp"
#include "tools/bench/options.hpp"
#include "tools/bench_program.hpp"
#include "tools/command.hpp"

namespace papaya {

namespace {

bool names_algorithms(const bench::Options& options) {
  const auto names_none = [](const std::string& name) { return name == "auto" || name == "native"; };
  return options.weak || options.algorithms.empty() ||
         !std::all_of(options.algorithms.begin(), options.algorithms.end(), names_none);
}

}  // namespace

void add_bench(CLI::App& app, const std::vector<std::string>& words, int& exit_code) {
  CLI::App* const command = app.add_subcommand(
      "bench", "measure MPI's collectives and papaya's in turn: mpirun -n N papaya bench COLLECTIVE");
  auto options = std::make_shared<bench::Options>();
  bench::add_options(*command, *options);
  command->callback([options, words, &exit_code] {
    std::string problem;
    if (!bench::finish(*options, problem))
      exit_code = fail_once("papaya bench", exit_usage, problem);
    else if (!options->combine.empty())
      exit_code = bench::combine(*options);
    else if (options->kernels)
      exit_code = bench::run_kernels(*options);
    else
      exit_code = become_bench_program("papaya bench", options->mpi, {words.begin() + 1, words.end()},
                                       "papaya bench " + options->collective_word, names_algorithms(*options));
  });
}

}  // namespace papaya
