// papaya bench: finds out which MPI launched this process and becomes the measuring program for it, under the
// library.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tools/bench/combine.hpp"
#include "tools/bench/kernels.hpp"
#include "tools/bench/launcher.hpp"
#include "tools/bench/options.hpp"
#include "tools/command.hpp"
#include "tools/preload.hpp"

namespace papaya {

namespace {

const char* environment(const char* name) {
  return std::getenv(name);
}

// One sentence from one rank. The others end a little later: a launcher kills all ranks as soon as one fails,
// and the sentence should be out by then.
int fail(int exit_code, const std::string& sentence) {
  if (bench::rank_of(environment) != 0) {
    usleep(300000);
    return exit_code;
  }
  std::fprintf(stderr, "papaya bench: %s\n", sentence.c_str());
  return exit_code;
}

std::string program_for(const std::string& mpi) {
  return find_beside("papaya-bench-" + mpi, std::string(PAPAYA_LIBEXECDIR) + "/papaya");
}

int run(const bench::Options& options, const std::vector<std::string>& words) {
  std::string mpi = options.mpi.empty() ? bench::launcher_of(environment) : options.mpi;
  if (mpi.empty())
    return fail(exit_usage, "put the launcher in front: mpirun -n 4 papaya bench " + options.collective_word + ".");
  if (mpi == "pmix") {
    const bool openmpi = !program_for("openmpi").empty();
    if (openmpi && !program_for("mpich").empty())
      return fail(exit_usage, "this launcher does not identify its MPI: add --mpi openmpi or --mpi mpich.");
    mpi = openmpi ? "openmpi" : "mpich";
  }
  const std::string program = program_for(mpi);
  if (program.empty())
    return fail(exit_failed,
                "there is no papaya-bench-" + mpi + " beside this command; papaya was built without that MPI.");
  const std::string library = find_library();
  if (library.empty()) return exit_failed;
  setenv("PAPAYA_PROFILE", "off", 0);     // recording is not what is measured
  setenv("PAPAYA_TRANSPORT", "auto", 0);  // algorithms are chosen one after the other, across nodes too
  std::vector<std::string> command = {program};
  command.insert(command.end(), words.begin(), words.end());
  return exec_preloaded(library, command);
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
      exit_code = fail(exit_usage, problem);
    else if (!options->combine.empty())
      exit_code = bench::combine(*options);
    else
      exit_code = options->kernels ? bench::run_kernels(*options) : run(*options, words);
  });
}

int bench_usage(const std::string& problem) {
  std::string sentence = problem;
  for (char& c : sentence)
    if (c == '\n') c = ' ';
  return fail(exit_usage, sentence + " (papaya bench --help lists the options)");
}

}  // namespace papaya
