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

#include "base/topology.hpp"
#include "tools/bench/machine.hpp"
#include "tools/bench/measure.hpp"
#include "tools/bench/options.hpp"
#include "tools/bench/output.hpp"
#include "tools/bench/quiet.hpp"
#include "tools/bench/weak_measure.hpp"
#include "tools/bench/weak_output.hpp"

namespace papaya::bench {

namespace {

enum : int { fine = 0, failed = 1, usage = 2 };

void print_error(const std::string& sentence) {
  std::fprintf(stderr, "papaya bench: %s\n", sentence.c_str());
}

// "Open MPI v4.1.4", "MPICH 4.0.2": the same as in the report.
std::string mpi_name() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  std::string name(version, std::strcspn(version, "\n,"));
  std::replace(name.begin(), name.end(), '\t', ' ');
  if (const std::size_t word = name.find(" Version:"); word != name.npos) name.erase(word, 9);
  while (name.find("  ") != name.npos) name.erase(name.find("  "), 1);
  return name;
}

// Rank 0 finds out, and all know: a sentence, or nothing.
std::string agreed(std::string problem, MPI_Comm world) {
  return quiet::share(std::move(problem), world);
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

void measure_weak(Job& job, const std::function<void(const std::string&)>& warn,
                  const std::function<void(const std::string&)>& print, Progress& progress, Result& result) {
  const std::vector<std::size_t>& sizes = job.options.sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto step = [&](double share, const std::string& algorithm) {
      if (job.rank == 0)
        progress.show((static_cast<double>(i) + share) / static_cast<double>(sizes.size()),
                      fmt::format("{} {} {}", name_of(*job.options.weak), short_bytes(sizes[i]), algorithm));
    };
    std::vector<Row> rows = measure_weak_size(job, sizes[i], warn, step);
    progress.clear();
    if (i == 0) print(weak_table_head(rows));
    for (Row& row : rows) {
      print(weak_table_row(row));
      result.skew_us = std::max(result.skew_us, row.skew_us);
      result.rows.push_back(std::move(row));
    }
  }
}

int measure_all(const Options& options, MPI_Comm world) {
  CommonClock clock(world);
  const Switch algorithms;
  Job job{options, clock, algorithms, world, 0, 1, clock.nodes(), false, {}, 0};
  PMPI_Comm_rank(world, &job.rank);
  PMPI_Comm_size(world, &job.ranks);

  std::string problem;
  if (options.root >= job.ranks)
    problem = fmt::format("--root {}: there are {} ranks, counted from 0.", options.root, job.ranks);
  if (options.weak && problem.empty()) problem = weak_problem(options);
  if (job.rank == 0 && problem.empty()) problem = output_problem(options);
  std::string replay;
  if (job.rank == 0 && problem.empty() && options.pattern == Pattern::replay) {
    replay = replay_text(options, problem);
    if (problem.empty() && !parse_replay(replay, job.ranks, job.replay, problem))
      problem = options.replay_file + ": " + problem + ".";
  }
  problem = agreed(problem, world);
  if (!problem.empty()) {
    if (job.rank == 0) print_error(problem);
    return usage;
  }
  replay = quiet::share(replay, world);
  if (options.pattern == Pattern::replay) parse_replay(replay, job.ranks, job.replay, problem);

  topology::CoreSet allowed = topology::allowed().cores;
  quiet::unite(&allowed, static_cast<int>(sizeof allowed), clock.node());
  const int cores = std::max(1, topology::count(allowed));
  int node_rank = 0, node_ranks = 1;
  PMPI_Comm_rank(clock.node(), &node_rank);
  PMPI_Comm_size(clock.node(), &node_ranks);
  job.core_each = quiet::maximum(node_ranks > cores ? 1 : 0, world) == 0;
  if (job.core_each) CommonClock::sleep_exactly();
  if (options.mode == Mode::imbalanced) job.units_per_us = measure_units_per_us(clock);

  const std::size_t largest = *std::max_element(options.sizes.begin(), options.sizes.end());
  Result result;
  result.ranks = job.ranks;
  result.nodes = job.nodes;
  result.cores = static_cast<int>(quiet::sum(node_rank == 0 ? cores : 0, world));
  result.mpi = mpi_name();
  result.mode = std::string(name_of(options.mode));
  result.pattern = options.mode == Mode::imbalanced ? "random" : std::string(name_of(options.pattern));
  if (options.mif >= 0) result.mif = options.mif;
  if (options.weak) result.compute_us = options.compute_us;
  result.seed = options.seed;
  result.rounds = options.rounds;
  result.root = options.root;
  result.precision = options.precision;
  result.margin = options.margin;
  result.samples = static_cast<std::size_t>(options.samples);
  result.machine = measure_machine(clock, world, cores, largest);

  result.clock_error_us = clock.error_us();
  result.skew_us = options.pattern == Pattern::replay && options.skew_us < 0 ? job.replay.largest_us()
                                                                             : std::max(0.0, options.skew_us);
  const auto print = [&](const std::string& text) {
    if (job.rank != 0) return;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  };
  print(header_text(result));

  Progress progress(job.rank == 0);
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& sentence) {
    if (job.rank != 0 || std::find(warnings.begin(), warnings.end(), sentence) != warnings.end()) return;
    progress.clear();
    print_error(sentence);
    warnings.push_back(sentence);
  };
  if (!algorithms.is_there() && !options.weak)
    warn("the preloaded library has no papaya_select to switch algorithms with; measuring native MPI only.");

  const Others others(clock);
  std::size_t steps = 0, done = 0;
  for (const auto& [collective, form] : options.operations)
    steps += collective == Collective::barrier ? 1 : options.sizes.size();
  if (options.weak) measure_weak(job, warn, print, progress, result);
  const bool together = options.pattern == Pattern::none && options.mode != Mode::imbalanced;
  for (const Operation& operation : options.operations) {
    const bool barrier = operation.collective == Collective::barrier;
    Calls calls(operation, barrier ? 0 : largest, options.root, world);
    print(table_head(result, operation));
    for (const std::size_t bytes : barrier ? std::vector<std::size_t>{0} : options.sizes) {
      const auto step = [&](double share, const std::string& algorithm) {
        if (job.rank == 0)
          progress.show((static_cast<double>(done) + share) / static_cast<double>(steps),
                        fmt::format("{} {} {}", name_of(operation), short_bytes(bytes), algorithm));
      };
      std::vector<Row> rows = measure_size(job, calls, operation, bytes, warn, step);
      measure_lines_again(clock, world, result.machine);
      progress.clear();
      for (Row& row : rows) {
        if (job.nodes == 1 && job.ranks > 1 && result.machine.is_measured())
          if (const double limit = limit_us(row.collective, bytes, job.ranks, together, result.machine); limit > 0)
            row.limit_us = limit;
        result.skew_us = std::max(result.skew_us, row.skew_us);
        print(table_row(row, 1));
        result.rows.push_back(std::move(row));
      }
      ++done;
    }
  }
  result.clock_error_us = clock.error_us();
  result.others_share = quiet::maximum(others.share(), world);

  print(remarks_text(result));
  int exit_code = fine;
  if (job.rank == 0) {
    if (!write_files(options, result) || std::any_of(result.rows.begin(), result.rows.end(), is_wrong))
      exit_code = failed;
  }
  quiet::share(&exit_code, sizeof exit_code, world);
  return exit_code;
}

int run(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm world = MPI_COMM_WORLD;
  int rank = 0;
  PMPI_Comm_rank(world, &rank);
  int exit_code = usage;
  try {
    Options options;
    std::string problem;
    if (!parse(std::vector<std::string>(argv + 1, argv + argc), options, problem) || options.kernels) {
      if (rank == 0) print_error(problem.empty() ? "papaya bench kernels runs without this program." : problem);
    } else {
      exit_code = measure_all(options, world);
    }
  } catch (const std::exception& error) {
    // The others cannot know.
    print_error(error.what());
    MPI_Abort(world, failed);
  }
  MPI_Finalize();
  return exit_code;
}

}  // namespace
}  // namespace papaya::bench

int main(int argc, char** argv) {
  return papaya::bench::run(argc, argv);
}
