// papaya-bench-MPI: what `papaya bench` becomes on every rank. Measures MPI's collectives and papaya's in
// turn.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tools/bench/options.hpp"
#include "tools/bench/output.hpp"
#include "tools/bench/quiet.hpp"
#include "tools/bench/session.hpp"
#include "tools/bench/tune.hpp"
#include "tools/bench/weak_measure.hpp"
#include "tools/command.hpp"

namespace papaya::bench {

namespace {

void print_error(const std::string& sentence) {
  std::fprintf(stderr, "papaya bench: %s\n", sentence.c_str());
}

std::string replay_text(const Options& options, std::string& problem) {
  std::ifstream file(options.replay_file, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad()) problem = "cannot read " + options.replay_file + ": " + std::strerror(errno) + ".";
  return text;
}

// Found before anything is measured, not after.
std::string output_problem(const Options& options) {
  for (const std::string& name : {options.json, options.csv, options.plot}) {
    if (name.empty()) continue;
    errno = 0;
    if (!std::ofstream(name, std::ios::app)) return "cannot write " + name + ": " + std::strerror(errno) + ".";
  }
  return "";
}

int measure_all(const Options& options, MPI_Comm world) {
  Session session(world);
  const bool is_first = session.rank() == 0;
  std::string problem;
  if (options.root >= session.ranks())
    problem = fmt::format("--root {}: there are {} ranks, counted from 0.", options.root, session.ranks());
  if (options.weak && problem.empty()) problem = weak_problem(options);
  if (is_first && problem.empty()) problem = output_problem(options);
  std::string text;
  Replay replay;
  if (is_first && problem.empty() && options.pattern == Pattern::replay) {
    text = replay_text(options, problem);
    if (problem.empty() && !parse_replay(text, session.ranks(), replay, problem))
      problem = options.replay_file + ": " + problem + ".";
  }
  problem = session.agreed(problem);
  if (!problem.empty()) {
    if (is_first) print_error(problem);
    return exit_usage;
  }
  text = quiet::share(text, world);
  if (options.pattern == Pattern::replay) parse_replay(text, session.ranks(), replay, problem);

  Progress progress(is_first);
  std::vector<std::string> warnings;
  Show show;
  show.print = [&](const std::string& lines) {
    if (!is_first) return;
    std::fputs(lines.c_str(), stdout);
    std::fflush(stdout);
  };
  show.warn = [&](const std::string& sentence) {
    if (!is_first || std::find(warnings.begin(), warnings.end(), sentence) != warnings.end()) return;
    progress.clear();
    print_error(sentence);
    warnings.push_back(sentence);
  };
  show.progress = [&](double share, const std::string& what) {
    if (is_first) progress.show(share, what);
  };
  show.pause = [&] { progress.clear(); };
  const Result result = session.measure(options, replay, show);
  show.print(remarks_text(result));
  int exit_code = exit_fine;
  if (is_first && (!write_files(options, result) || std::any_of(result.rows.begin(), result.rows.end(), is_wrong)))
    exit_code = exit_failed;
  quiet::share(&exit_code, sizeof exit_code, world);
  return exit_code;
}

int run(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm world = MPI_COMM_WORLD;
  int rank = 0;
  PMPI_Comm_rank(world, &rank);
  int exit_code = exit_usage;
  try {
    std::vector<std::string> words(argv + 1, argv + argc);
    std::string problem;
    Options options;
    if (!words.empty() && words.front() == "tune") {
      words.erase(words.begin());
      TuneOptions tune_options;
      if (parse(words, tune_options, problem))
        exit_code = tune(tune_options, world);
      else if (rank == 0)
        print_error(problem);
    } else if (!parse(words, options, problem) || options.kernels) {
      if (rank == 0) print_error(problem.empty() ? "papaya bench kernels runs without this program." : problem);
    } else {
      exit_code = measure_all(options, world);
    }
  } catch (const std::exception& error) {
    // The others cannot know.
    print_error(error.what());
    MPI_Abort(world, exit_failed);
  }
  MPI_Finalize();
  return exit_code;
}

}  // namespace
}  // namespace papaya::bench

int main(int argc, char** argv) {
  return papaya::bench::run(argc, argv);
}
