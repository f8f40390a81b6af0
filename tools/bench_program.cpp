#include "tools/bench_program.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tools/bench/launcher.hpp"
#include "tools/command.hpp"
#include "tools/preload.hpp"

namespace papaya {

namespace {

const char* environment(const char* name) {
  return std::getenv(name);
}

std::string program_for(const std::string& mpi) {
  return find_beside("papaya-bench-" + mpi, std::string(PAPAYA_LIBEXECDIR) + "/papaya");
}

}  // namespace

int fail_once(const std::string& command, int exit_code, const std::string& sentence) {
  if (bench::rank_of(environment) != 0) {
    usleep(300000);
    return exit_code;
  }
  std::fprintf(stderr, "%s: %s\n", command.c_str(), sentence.c_str());
  return exit_code;
}

int launched_usage(const std::string& subcommand, const std::string& problem) {
  std::string sentence = problem;
  for (char& c : sentence)
    if (c == '\n') c = ' ';
  const std::string command = "papaya " + subcommand;
  return fail_once(command, exit_usage, sentence + " (" + command + " --help lists the options)");
}

int become_bench_program(const std::string& command, const std::string& mpi, const std::vector<std::string>& words,
                         const std::string& example, bool names_algorithms) {
  std::string name = mpi.empty() ? bench::launcher_of(environment) : mpi;
  if (name.empty()) return fail_once(command, exit_usage, "put the launcher in front: mpirun -n 4 " + example + ".");
  if (name == "pmix") {
    const bool openmpi = !program_for("openmpi").empty();
    if (openmpi && !program_for("mpich").empty())
      return fail_once(command, exit_usage,
                       "this launcher does not identify its MPI: add --mpi openmpi or --mpi mpich.");
    name = openmpi ? "openmpi" : "mpich";
  }
  const std::string program = program_for(name);
  if (program.empty())
    return fail_once(command, exit_failed,
                     "there is no papaya-bench-" + name + " beside this command; papaya was built without that MPI.");
  const std::string library = find_library();
  if (library.empty()) return exit_failed;
  setenv("PAPAYA_PROFILE", "off", 0);  // recording is not what is measured
  if (names_algorithms) setenv("PAPAYA_TRANSPORT", "auto", 0);
  std::vector<std::string> line = {program};
  line.insert(line.end(), words.begin(), words.end());
  return exec_preloaded(library, line);
}

}  // namespace papaya
