#include "tools/bench/options.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "algorithms/algorithm.hpp"
#include "base/settings.hpp"
#include "tools/bench/weak_options.hpp"
#include "tuning/selection.hpp"

namespace papaya::bench {

namespace {

constexpr std::array<Collective, 6> collectives = {Collective::allreduce, Collective::reduce,    Collective::bcast,
                                                   Collective::alltoall,  Collective::allgather, Collective::barrier};

constexpr std::array<std::string_view, 5> mode_names = {"tight", "deadline", "balanced", "imbalanced", "free"};

std::string lower(std::string_view word) {
  std::string text(word);
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

bool finish_collective(Options& options, std::string& problem) {
  if (options.collective_word == "kernels") {
    options.kernels = true;
    return true;
  }
  if (options.collective_word == "all") {
    options.collectives.assign(collectives.begin(), collectives.end());
    return true;
  }
  Collective collective{};
  if (tuning::collective_of(options.collective_word, collective) &&
      std::find(collectives.begin(), collectives.end(), collective) != collectives.end()) {
    options.collectives = {collective};
    return true;
  }
  options.weak = weak_called(options.collective_word);
  if (options.weak) return true;
  std::vector<std::string_view> names = {"allreduce", "reduce",  "bcast", "alltoall",
                                         "allgather", "barrier", "all",   "kernels"};
  for (const WeakCollective one : weak_benchmarked()) names.push_back(name_of(one));
  problem = unknown(lower(options.collective_word), "collective that can be measured", names);
  return false;
}

bool finish_pattern(Options& options, std::string& problem) {
  std::string_view word = options.pattern_word;
  if (word.substr(0, 7) == "replay:") {
    options.replay_file = word.substr(7);
    word = "replay";
  }
  std::vector<std::string_view> names;
  for (const PatternRow& row : pattern_rows()) {
    names.push_back(row.name);
    if (row.name == word) {
      options.pattern = row.pattern;
      if (row.pattern != Pattern::replay || !options.replay_file.empty()) return true;
      problem = "a replay needs a file: --pattern replay:FILE.";
      return false;
    }
  }
  problem = unknown(word, "arrival pattern", names);
  return false;
}

bool finish_mode(Options& options, std::string& problem) {
  if (std::isnan(options.skew_us) || std::isnan(options.mif) || std::isnan(options.seconds)) {
    problem = "--skew, --mif and --seconds take numbers.";
    return false;
  }
  const bool skewed_by_pattern = options.pattern != Pattern::none;
  if (options.weak)
    options.mode = skewed_by_pattern || options.compute_us >= 0 ? Mode::free : Mode::balanced;
  else
    options.mode = skewed_by_pattern ? Mode::deadline : Mode::tight;
  if (!options.mode_word.empty()) {
    const auto found = std::find(mode_names.begin(), mode_names.end(), options.mode_word);
    if (found == mode_names.end()) {
      problem = unknown(options.mode_word, "mode", mode_names);
      return false;
    }
    options.mode = static_cast<Mode>(found - mode_names.begin());
  }
  if (options.weak ? options.mode != Mode::free && options.mode != Mode::balanced : options.mode == Mode::free) {
    problem = "--mode " + std::string(name_of(options.mode)) + " is not for " + lower(options.collective_word) +
              (options.weak ? "; take free or balanced." : ", whose calls keep the ranks together.");
    return false;
  }
  const Mode skewed_mode = options.weak ? Mode::free : Mode::deadline;
  if (options.mode != skewed_mode && skewed_by_pattern) {
    problem = "--mode " + std::string(name_of(options.mode)) + " makes its own arrivals; --pattern is for --mode " +
              std::string(name_of(skewed_mode)) + ".";
    return false;
  }
  const bool skewed = options.mode == Mode::imbalanced || skewed_by_pattern;
  if (!skewed && (options.skew_us >= 0 || options.mif >= 0)) {
    problem = "--skew and --mif say how late ranks are in a --pattern, and there is none.";
    return false;
  }
  if (options.skew_us >= 0 && options.mif >= 0) {
    problem = "--skew and --mif say the same thing; give one of them.";
    return false;
  }
  if (options.mode == Mode::imbalanced && options.skew_us >= 0) {
    problem = "--mode imbalanced computes for multiples of a message's time; give --mif, not --skew.";
    return false;
  }
  if (options.pattern == Pattern::replay && options.mif >= 0) {
    problem = "a replay has its own times; --skew scales the latest arrival to so many microseconds.";
    return false;
  }
  if (skewed && options.pattern != Pattern::replay && options.skew_us < 0 && options.mif < 0) {
    if (options.compute_us > 0)
      options.skew_us = options.compute_us;
    else
      options.mif = 20;
  }
  return true;
}

bool finish_algorithms(const Options& options, std::string& problem) {
  for (const std::string& word : options.algorithms) {
    if (word == "native" || word == "auto") continue;
    const std::string_view name = std::string_view(word).substr(0, word.find(':'));
    std::vector<std::string_view> names = {"native", "auto"};
    bool known = false;
    for (const Descriptor* descriptor : registry()) {
      if (std::find(options.collectives.begin(), options.collectives.end(), descriptor->collective) ==
          options.collectives.end())
        continue;
      names.push_back(descriptor->name);
      if (descriptor != find_algorithm(descriptor->collective, name)) continue;
      known = true;
      // With its parameters it is a selection as in the environment, which knows what may stand there.
      // The preloaded library, which gets it, warns of old names.
      tuning::Parsed parsed;
      if (!tuning::parse(descriptor->collective, Form::blocking, word, parsed, problem)) {
        problem = "--algorithms " + word + ": " + problem;
        return false;
      }
    }
    if (!known) {
      problem = unknown(name, "algorithm of " + lower(options.collective_word), names);
      return false;
    }
  }
  return true;
}

// "--algorithms a:x=1,y=2,b": a word with '=' and without ':' belongs to the algorithm before it.
void join_parameters(std::vector<std::string>& words) {
  std::vector<std::string> joined;
  for (std::string& word : words) {
    if (!joined.empty() && word.find('=') != word.npos && word.find(':') == word.npos)
      joined.back() += "," + word;
    else
      joined.push_back(std::move(word));
  }
  words = std::move(joined);
}

// The first option of those given that means nothing to kernels; empty: there is none.
std::string_view of_collectives_only(const Options& options) {
  const Options untouched;
  const std::pair<std::string_view, bool> given[] = {{"-m", options.sizes_word != untouched.sizes_word},
                                                     {"-i", options.iterations != untouched.iterations},
                                                     {"-x", options.warmup != untouched.warmup},
                                                     {"--rounds", options.rounds != untouched.rounds},
                                                     {"--seconds", options.seconds != untouched.seconds},
                                                     {"--algorithms", !options.algorithms.empty()},
                                                     {"--root", options.root != untouched.root},
                                                     {"--pattern", options.pattern_word != untouched.pattern_word},
                                                     {"--skew", options.skew_us >= 0},
                                                     {"--mif", options.mif >= 0},
                                                     {"--seed", options.seed != untouched.seed},
                                                     {"--mode", !options.mode_word.empty()},
                                                     {"--plot", !options.plot.empty()},
                                                     {"--mpi", !options.mpi.empty()}};
  for (const auto& [name, is_given] : given)
    if (is_given) return name;
  return of_weak_ones(options);
}

}  // namespace

std::string unknown(std::string_view word, std::string_view kind, std::span<const std::string_view> names) {
  std::string text = "'" + std::string(word) + "' is no " + std::string(kind);
  if (const std::string_view nearest = nearest_name(word, names); !nearest.empty())
    return text + "; did you mean " + std::string(nearest) + "?";
  text += ": take one of";
  for (const std::string_view name : names) text += (name == names.front() ? " " : ", ") + std::string(name);
  return text + ".";
}

std::string_view name_of(Mode mode) noexcept {
  return mode_names[static_cast<std::size_t>(mode)];
}

std::span<const Collective> benchmarked() noexcept {
  return collectives;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option(
         "collective", options.collective_word,
         "allreduce, reduce, bcast, alltoall, allgather, barrier, all of them; a weakly consistent collective: " +
             weak_names() + "; or kernels: papaya's reduction kernels, without MPI")
      ->required()
      ->type_name("COLLECTIVE");
  app.add_option("-m,--sizes", options.sizes_word,
                 "message sizes in bytes, of alltoall and allgather those of the block: powers of two from "
                 "MIN to MAX")
      ->type_name("MIN:MAX|BYTES")
      ->capture_default_str();
  app.add_option("-i,--iterations", options.iterations, "timed calls per row; without it, as many as fit in --seconds")
      ->check(CLI::Range(1, 100000000))
      ->type_name("N");
  app.add_option("-x,--warmup", options.warmup,
                 "calls before the first timed one; without it 12, and up to 212 while they take less than 0.05 s")
      ->check(CLI::Range(0, 1000000))
      ->type_name("N");
  app.add_option("--rounds", options.rounds, "how often the algorithms take turns")
      ->check(CLI::Range(1, 1000))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "time per row, where -i does not say how many calls")
      ->check(CLI::Range(0.001, 3600.0))
      ->type_name("S")
      ->capture_default_str();
  app.add_option("--algorithms", options.algorithms,
                 "what to measure, beside native, as in PAPAYA_ALLREDUCE; without it, all there are and auto")
      ->delimiter(',')
      ->type_name("NAME,...");
  app.add_option("--root", options.root, "root of reduce and bcast, with thresholds too")
      ->check(CLI::Range(0, 100000000))
      ->type_name("RANK")
      ->capture_default_str();
  app.add_option("--pattern", options.pattern_word,
                 "who arrives late: none, random, ascending, descending, first-late, last-late, half-late, "
                 "straggler, "
                 "exponential, workers, replay:FILE")
      ->type_name("PATTERN")
      ->capture_default_str();
  app.add_option("--skew", options.skew_us, "how late, in microseconds")->check(CLI::Range(0.0, 1e8))->type_name("US");
  app.add_option("--mif", options.mif,
                 "how late, in times of a message of the row's size between two ranks; 20 if neither is given")
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("FACTOR");
  app.add_option("--seed", options.seed, "of the random patterns")->type_name("N")->capture_default_str();
  app.add_option(
         "--mode", options.mode_word,
         "tight: back to back (without a pattern the default); deadline: arrivals on a common clock (with a "
         "pattern the default); balanced, imbalanced: after a barrier, as in the thesis; free: of weakly consistent "
         "collectives, which nothing but their calls keeps together")
      ->type_name("MODE");
  app.add_option("--json", options.json, "write the results as JSON")->type_name("FILE");
  app.add_option("--csv", options.csv, "write the results as CSV")->type_name("FILE");
  app.add_option("--plot", options.plot,
                 "draw size against excess as SVG, of one collective; of weakly consistent ones slack against time, "
                 "waiting and calls per second, or size against time")
      ->type_name("FILE");
  add_weak_options(app, options);
  app.add_option("--mpi", options.mpi, "which MPI, where the launcher does not tell: openmpi or mpich")
      ->check(CLI::IsMember({"openmpi", "mpich"}))
      ->type_name("NAME");
}

bool parse_sizes(std::string_view text, std::vector<std::size_t>& sizes, std::string& problem) {
  sizes.clear();
  const std::size_t colon = text.find(':');
  std::int64_t lowest = 0, highest = 0;
  const bool read = parse_bytes(text.substr(0, colon), lowest) &&
                    (colon == text.npos ? (highest = lowest, true) : parse_bytes(text.substr(colon + 1), highest));
  if (!read) {
    problem = "-m takes MIN:MAX or one size, such as 8:64K, not '" + std::string(text) + "'.";
    return false;
  }
  if (lowest < 1 || highest < lowest || highest > (std::int64_t{1} << 30)) {
    problem = "-m takes sizes from 1 byte to 1 GiB, the smaller first, not '" + std::string(text) + "'.";
    return false;
  }
  for (std::int64_t bytes = lowest; bytes <= highest; bytes *= 2) sizes.push_back(static_cast<std::size_t>(bytes));
  if (sizes.back() != static_cast<std::size_t>(highest)) sizes.push_back(static_cast<std::size_t>(highest));
  return true;
}

bool finish(Options& options, std::string& problem) {
  join_parameters(options.algorithms);
  if (!finish_collective(options, problem)) return false;
  if (options.kernels) {
    if (const std::string_view name = of_collectives_only(options); !name.empty())
      problem = std::string(name) +
                " is for collectives; kernels, measured in each cache and in memory, take --json and --csv.";
    return problem.empty();
  }
  if (!parse_sizes(options.sizes_word, options.sizes, problem) || !finish_pattern(options, problem) ||
      !finish_mode(options, problem) || !finish_weak(options, problem) ||
      (!options.weak && !finish_algorithms(options, problem)))
    return false;
  const auto is_of_doubles = [](Collective one) { return one == Collective::allreduce || one == Collective::reduce; };
  if (options.weak || std::any_of(options.collectives.begin(), options.collectives.end(), is_of_doubles))
    for (const std::size_t bytes : options.sizes)
      if (bytes % sizeof(double) != 0) {
        problem = std::string(options.weak ? "weakly consistent collectives" : "reductions") +
                  " are measured with doubles: " + std::to_string(bytes) + " bytes are no multiple of 8.";
        return false;
      }
  if (!options.plot.empty() && !options.weak &&
      (options.collectives.size() != 1 || options.collectives[0] == Collective::barrier)) {
    problem = "--plot draws one collective over its message sizes.";
    return false;
  }
  return true;
}

bool parse(std::vector<std::string> words, Options& options, std::string& problem) {
  CLI::App app;
  add_options(app, options);
  std::reverse(words.begin(), words.end());  // the way CLI11 takes a vector
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    problem = error.what();
    return false;
  }
  return finish(options, problem);
}

std::string launcher_of(const char* (*get)(const char* name)) {
  if (get("OMPI_COMM_WORLD_SIZE") != nullptr) return "openmpi";
  for (const char* name : {"PMI_RANK", "PMI_SIZE", "PMI_FD"})
    if (get(name) != nullptr) return "mpich";
  return get("PMIX_RANK") != nullptr ? "pmix" : "";
}

int rank_of(const char* (*get)(const char* name)) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"})
    if (const char* const value = get(name); value != nullptr) return std::atoi(value);
  return 0;
}

}  // namespace papaya::bench
