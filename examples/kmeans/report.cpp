#include "report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "random.hpp"

namespace kmeans {

namespace {

[[noreturn]] void cannot_write(const std::string& path) {
  throw Problem(fmt::format("Cannot write {}: {}.", path, std::strerror(errno)));
}

// As a whole or not at all: two ranks may write it where one has been replaced while it did.
void write(const std::string& path, const std::string& text) {
  const std::string draft = fmt::format("{}.{}", path, getpid());
  std::ofstream file(draft);
  file << text;
  file.close();
  if (!file || std::rename(draft.c_str(), path.c_str()) != 0) cannot_write(path);
}

std::string library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all = text;
  std::string first = all.substr(0, all.find_first_of(",\n"));
  for (char& one : first)
    if (one == '\t') one = ' ';
  return first;
}

void write_json(const Options& options, const Outcome& outcome, const Facts& facts) {
  nlohmann::ordered_json json{{"mode", options.is_plain ? "plain" : "resilient"},
                              {"mpi", library()},
                              {"ranks", facts.ranks},
                              {"parts", facts.parts},
                              {"over", facts.place},
                              {"points", facts.points},
                              {"dimensions", facts.shape.dimensions},
                              {"clusters", facts.shape.clusters},
                              {"iterations", outcome.iterations},
                              {"seconds", outcome.seconds},
                              {"square_distances", outcome.square_distances},
                              {"checksum", checksum_of(outcome.centroids)},
                              {"deaths", facts.deaths},
                              {"recoveries", outcome.recoveries},
                              {"recovery_s", outcome.in_recovery},
                              {"until_agreed_s", outcome.until_agreed},
                              {"loading_s", outcome.in_loading},
                              {"checkpoints", outcome.checkpoints},
                              {"checkpoints_s", outcome.in_checkpoints}};
  for (const Step& step : outcome.steps) json["steps"].push_back({step.iteration, step.ended});
  write(options.json, json.dump() + "\n");
}

}  // namespace

std::string checksum_of(const Numbers& centroids) {
  std::uint64_t sum = centroids.size();
  for (const double one : centroids) sum = mix(sum ^ std::bit_cast<std::uint64_t>(one));
  return fmt::format("{:016x}", sum);
}

void try_files(const Options& options) {
  for (const std::string& path : {options.output, options.initial, options.json})
    if (!path.empty() && !std::ofstream(path, std::ios::app)) cannot_write(path);
}

void write_centroids(const std::string& path, const Numbers& centroids, const Shape& shape) {
  std::string text;
  for (std::size_t i = 0; i < centroids.size(); ++i)
    text += fmt::format("{}{}", centroids[i], (i + 1) % shape.dimensions == 0 ? '\n' : ',');
  write(path, text);
}

void report(const Options& options, const Outcome& outcome, const Facts& facts) {
  const auto percent = [&](double seconds) { return outcome.seconds > 0 ? 100 * seconds / outcome.seconds : 0; };
  fmt::print("{} iterations, {:.3f} s, {:.3f} ms each; sum of squared distances {:.10g}\n", outcome.iterations,
             outcome.seconds, 1e3 * outcome.seconds / static_cast<double>(std::max(outcome.iterations, 1L)),
             outcome.square_distances);
  if (!options.is_plain) {
    fmt::print("checkpoints: {}, {:.6f} s, {:.4f} % of the run\n", outcome.checkpoints, outcome.in_checkpoints,
               percent(outcome.in_checkpoints));
    fmt::print("ranks that died: {}; recoveries: {}, {:.3f} s, {:.2f} % of the run ({:.3f} s until the ranks agreed)\n",
               facts.deaths, outcome.recoveries, outcome.in_recovery, percent(outcome.in_recovery),
               outcome.until_agreed);
  }
  fmt::print("centroids: {}\n", checksum_of(outcome.centroids));
  std::fflush(stdout);
  if (!options.output.empty()) write_centroids(options.output, outcome.centroids, facts.shape);
  if (!options.json.empty()) write_json(options, outcome, facts);
}

}  // namespace kmeans
