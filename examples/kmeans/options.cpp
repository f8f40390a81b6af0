#include "options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace kmeans {

namespace {

void add_points(CLI::App& app, Options& options, std::string& columns) {
  app.add_option("-i,--input", options.input,
                 "CSV file, with or without a line of names; without it they are generated");
  app.add_option("--columns", columns, "Columns of the file that are coordinates, as 2-11 (default: all)");
  app.add_option("-n,--points", options.points, "Points that are generated")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 48));
  app.add_option("-d,--dimensions", options.dimensions, "Coordinates of a generated point")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 20));
  app.add_option("--seed", options.seed, "Of the points that are generated and of the first centroids")
      ->capture_default_str();
}

void add_clustering(CLI::App& app, Options& options) {
  app.add_option("-k,--clusters", options.clusters, "Centroids")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 24));
  app.add_option("--iterations", options.iterations, "At most so many")
      ->capture_default_str()
      ->check(CLI::Range(0L, 1000000L));
  app.add_option("--tolerance", options.tolerance, "End when no coordinate of a centroid moves by more")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("-o,--output", options.output, "CSV file for the centroids");
  app.add_option("--initial", options.initial, "CSV file for the centroids that it begins with");
  app.add_option("--json", options.json, "File for the results");
}

void add_resilience(CLI::App& app, Options& options) {
  auto* const plain =
      app.add_flag("--plain", options.is_plain, "By MPI_Allreduce, without spares and checkpoints, to compare with");
  const auto add = [&](const char* name, auto& variable, const char* help) {
    return app.add_option(name, variable, help)->capture_default_str()->excludes(plain);
  };
  add("--spares", options.spares, "Ranks, the last ones, that wait until they replace another")
      ->check(CLI::Range(0, 1 << 20));
  add("--checkpoint", options.checkpoint, "Iterations from one checkpoint to the next, 2 at least; 0: none")
      ->check(CLI::Range(2L, 1000000L) | CLI::IsMember({0}));
  add("--timeout", options.timeout, "Seconds of silence after which a rank is suspected to be dead")
      ->check(CLI::Range(0.01, 3600.0));
  add("--kill", options.kills, "So many ranks kill themselves, each at a random moment")->check(CLI::Range(0, 1 << 20));
  add("--kill-seed", options.kill_seed, "Of the ranks and moments");
}

bool read_columns(const std::string& text, Options& options) {
  if (text.empty()) return true;
  const std::size_t dash = text.find('-');
  const bool is_number = text.find_first_not_of("0123456789-") == std::string::npos && dash != 0 && text.size() < 16;
  if (!is_number || std::count(text.begin(), text.end(), '-') > 1) return false;
  options.first_column = std::stoul(text);
  options.last_column = dash == std::string::npos ? options.first_column
                        : dash + 1 == text.size() ? 0
                                                  : std::stoul(text.substr(dash + 1));
  return options.first_column >= 1 &&
         (options.last_column == 0 ? dash + 1 == text.size() : options.last_column >= options.first_column);
}

}  // namespace

std::optional<Options> parse(int argc, char** argv, int rank, int& code) {
  Options options;
  std::string columns;
  CLI::App app{
      "K-means on all ranks that goes on when ranks die: spare ranks take over from checkpoints in the memory of "
      "others."};
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_points(app, options, columns);
  add_clustering(app, options);
  add_resilience(app, options);
  try {
    app.parse(argc, argv);
    if (!read_columns(columns, options))
      throw CLI::ValidationError("--columns", columns + " is no range of columns, as 2-11, 3 or 2-");
  } catch (const CLI::ParseError& error) {
    code = rank == 0 ? app.exit(error) : error.get_exit_code();
    if (code != 0) code = 2;
    return std::nullopt;
  }
  return options;
}

}  // namespace kmeans
