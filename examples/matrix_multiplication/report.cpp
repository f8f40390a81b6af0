#include "report.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "check.hpp"

namespace matrix_multiplication {

namespace {

std::string library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all = text;
  std::string first = all.substr(0, all.find_first_of(",\n"));
  first.erase(std::remove(first.begin(), first.end(), '\t'), first.end());
  return first;
}

double gflops(const Outcome& outcome, const Result& result) {
  return 2.0 * outcome.m * outcome.n * outcome.k / result.seconds / 1e9;
}

double peak(const Outcome& outcome, const Job& job) {
  return outcome.core_gflops * job.cores;
}

void print(const Outcome& outcome, const Options& options, const Job& job) {
  fmt::print("{} x {} x {} (m n k) in blocks of {}, {} placement, {} rank{} on {} core{}, {}\n", outcome.m, outcome.n,
             outcome.k, options.block, name_of(options.placement), job.ranks, job.ranks == 1 ? "" : "s", job.cores,
             job.cores == 1 ? "" : "s", library());
  if (!outcome.carrier.empty())
    fmt::print("notified: over {}, {}, C assigned by {}; largest share of the work: {:.3f} of the mean\n",
               outcome.carrier, name_of(options.order), name_of(outcome.assignment), outcome.balance);
  if (options.variant != Variant::notified)
    fmt::print("pdgemm: grid {}x{}, blocks of {}, panels of {}, {}\n", outcome.grid.rows, outcome.grid.columns,
               options.pdgemm_block, options.panel,
               options.placement == Placement::cyclic ? "data in its layout from the beginning"
                                                      : "with the redistribution of A, B and C");
  fmt::print("DGEMM of one rank alone: {:.1f} GFLOP/s; peak of {} core{}: {:.1f}\n", outcome.core_gflops, job.cores,
             job.cores == 1 ? "" : "s", peak(outcome, job));
  fmt::print("{:<10}{:>10}{:>10}{:>9}{:>12}{:>12}{:>12}{:>12}{:>12}\n", "variant", "seconds", "GFLOP/s", "of peak",
             "in DGEMM", "waiting", "to layout", "MB moved", "residual");
  const auto number = [](bool is_there, double value) { return is_there ? fmt::format("{:.4f}", value) : "-"; };
  for (const Result& result : outcome.results) {
    const bool is_notified = result.variant == "notified";
    fmt::print("{:<10}{:>10.4f}{:>10.1f}{:>8.1f}%{:>12.4f}{:>12}{:>12}{:>12.1f}{:>12.2g}\n", result.variant,
               result.seconds, gflops(outcome, result), 100 * gflops(outcome, result) / peak(outcome, job),
               result.dgemm, number(is_notified, result.waiting), number(!is_notified, result.redistribution),
               result.megabytes, result.residual);
  }
  if (outcome.difference) fmt::print("largest difference between the two: {:.2g} by rounding\n", *outcome.difference);
  std::fflush(stdout);
}

void write_json(const Outcome& outcome, const Options& options, const Job& job) {
  nlohmann::ordered_json json{{"mpi", library()},
                              {"ranks", job.ranks},
                              {"cores", job.cores},
                              {"m", outcome.m},
                              {"n", outcome.n},
                              {"k", outcome.k},
                              {"block", options.block},
                              {"placement", name_of(options.placement)},
                              {"seed", options.seed},
                              {"assign", name_of(outcome.assignment)},
                              {"order", name_of(options.order)},
                              {"over", outcome.carrier},
                              {"balance", outcome.balance},
                              {"grid", fmt::format("{}x{}", outcome.grid.rows, outcome.grid.columns)},
                              {"pdgemm_block", options.pdgemm_block},
                              {"panel", options.panel},
                              {"core_gflops", outcome.core_gflops},
                              {"peak_gflops", peak(outcome, job)}};
  for (const Result& result : outcome.results)
    json["variants"][result.variant] = {
        {"seconds", result.seconds},   {"gflops", gflops(outcome, result)},         {"dgemm_s", result.dgemm},
        {"waiting_s", result.waiting}, {"redistribution_s", result.redistribution}, {"moved_mb", result.megabytes},
        {"residual", result.residual}};
  if (outcome.difference) json["difference"] = *outcome.difference;
  std::ofstream file(options.json);
  file << json.dump(2) << '\n';
  if (!file.flush()) throw Problem(fmt::format("Cannot write {}: {}.", options.json, std::strerror(errno)));
}

}  // namespace

double median(std::vector<double> numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

void report(const Outcome& outcome, const Options& options, const Job& job) {
  if (job.rank != 0) return;
  print(outcome, options, job);
  if (!options.json.empty()) write_json(outcome, options, job);
}

bool is_right(const Outcome& outcome, const Job& job) {
  std::string sentence;
  if (outcome.difference && !(*outcome.difference <= most_residual))
    sentence = fmt::format("The two products differ by {:.3g}; rounding makes that no more than {}.",
                           *outcome.difference, most_residual);
  for (const Result& result : outcome.results)
    if (!(result.residual <= most_residual))
      sentence = fmt::format("C of {} is not A * B: the residual is {:.3g}; rounding makes it no more than {}.",
                             result.variant, result.residual, most_residual);
  if (job.rank == 0 && !sentence.empty()) fmt::print(stderr, "matrix_multiplication: {}\n", sentence);
  if (job.rank == 0 && sentence.empty()) fmt::print("C is A * B: residuals under {}\n", most_residual);
  return sentence.empty();
}

}  // namespace matrix_multiplication
