#include "tools/bench/options.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "algorithms/algorithm.hpp"
#include "base/settings.hpp"
#include "tools/bench/sizes.hpp"
#include "tools/bench/weak_options.hpp"
#include "tools/parse_words.hpp"
#include "tuning/selection.hpp"

namespace papaya::bench {

namespace {

constexpr std::array<std::string_view, 5> mode_names = {"tight", "deadline", "balanced", "imbalanced", "free"};

std::string lower(std::string_view word) {
  std::string text(word);
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

bool no_collective(std::string_view word, std::string& problem) {
  std::vector<std::string> known;
  for (const Operation& one : benchmarked()) known.push_back(name_of(one));
  std::vector<std::string_view> names(known.begin(), known.end());
  names.insert(names.end(), {"all", "kernels"});
  for (const WeakCollective one : weak_benchmarked()) names.push_back(name_of(one));
  problem = unknown(lower(word), "collective that can be measured", names);
  return false;
}

bool finish_collective(Options& options, std::string& problem) {
  if (options.collective_word == "kernels") {
    options.kernels = true;
    return true;
  }
  if (options.collective_word == "all") {
    for (const Collective one : with_algorithms()) options.operations.push_back({one});
    return true;
  }
  options.weak = weak_called(options.collective_word);
  if (options.weak) return true;
  std::string_view rest = options.collective_word;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    more = comma != rest.npos;
    rest.remove_prefix(more ? comma + 1 : rest.size());
    const std::optional<Operation> one = operation_called(word);
    if (!one && (weak_called(word) || word == "all" || word == "kernels")) {
      problem = "'" + std::string(word) + "' is measured in a launch of its own.";
      return false;
    }
    if (!one) return no_collective(word, problem);
    options.operations.push_back(*one);
    if (one->form != options.operations.front().form) {
      problem = "blocking and nonblocking collectives are measured in launches of their own.";
      return false;
    }
  }
  return true;
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

bool is_nonblocking(const Options& options) {
  return !options.operations.empty() && options.operations.front().form != Form::blocking;
}

bool finish_mode(Options& options, std::string& problem) {
  if (std::isnan(options.skew_us) || std::isnan(options.mif) || std::isnan(options.seconds)) {
    problem = "--skew, --mif and --seconds take numbers.";
    return false;
  }
  const bool skewed_by_pattern = options.pattern != Pattern::none;
  if (options.weak)
    options.mode = skewed_by_pattern || options.compute_us >= 0 ? Mode::free : Mode::balanced;
  else if (is_nonblocking(options))
    options.mode = skewed_by_pattern ? Mode::deadline : Mode::balanced;
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
  if (is_nonblocking(options) && options.mode != Mode::balanced && options.mode != Mode::deadline) {
    problem = "--mode " + std::string(name_of(options.mode)) + " is not for " + lower(options.collective_word) +
              "; take balanced or, with a --pattern, deadline.";
    return false;
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
  const auto has_choice = [](const Operation& one) {
    const std::span<const Collective> all = with_algorithms();
    return one.form == Form::blocking && std::find(all.begin(), all.end(), selected_with(one.collective)) != all.end();
  };
  for (const std::string& word : options.algorithms) {
    if (word != "native" && !has_choice(options.operations.front())) {
      problem = "of " + lower(options.collective_word) + " only native is measured" +
                (is_nonblocking(options) ? ", and what the environment selects: PAPAYA_IALLREDUCE and the like." : ".");
      return false;
    }
    if (word == "native" || word == "auto") continue;
    const std::string_view name = std::string_view(word).substr(0, word.find(':'));
    std::vector<std::string_view> names = {"native", "auto"};
    bool known = false;
    for (const Descriptor* descriptor : registry()) {
      const auto goes_by_it = [&](const Operation& one) {
        return selected_with(one.collective) == descriptor->collective;
      };
      if (std::none_of(options.operations.begin(), options.operations.end(), goes_by_it)) continue;
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

// The first option of those given that measuring collectives alone takes; empty: there is none.
std::string_view of_measuring_only(const Options& options) {
  const Options untouched;
  const std::pair<std::string_view, bool> given[] = {{"-m", options.sizes_word != untouched.sizes_word},
                                                     {"-i", options.iterations != untouched.iterations},
                                                     {"-x", options.warmup != untouched.warmup},
                                                     {"--rounds", options.rounds != untouched.rounds},
                                                     {"--seconds", options.seconds != untouched.seconds},
                                                     {"--precision", options.precision != untouched.precision},
                                                     {"--algorithms", !options.algorithms.empty()},
                                                     {"--root", options.root != untouched.root},
                                                     {"--pattern", options.pattern_word != untouched.pattern_word},
                                                     {"--skew", options.skew_us >= 0},
                                                     {"--mif", options.mif >= 0},
                                                     {"--tests", options.tests != untouched.tests},
                                                     {"--seed", options.seed != untouched.seed},
                                                     {"--mode", !options.mode_word.empty()},
                                                     {"--mpi", !options.mpi.empty()}};
  for (const auto& [name, is_given] : given)
    if (is_given) return name;
  return of_weak_ones(options);
}

// The same of kernels.
std::string_view of_collectives_only(const Options& options) {
  const std::string_view name = of_measuring_only(options);
  if (!name.empty()) return name;
  return !options.plot.empty()                  ? "--plot"
         : options.margin != Options().margin   ? "--margin"
         : options.samples != Options().samples ? "--samples"
                                                : std::string_view();
}

bool finish_combine(const Options& options, std::string& problem) {
  std::string_view name = of_measuring_only(options);
  if (!options.collective_word.empty()) name = options.collective_word;
  if (!name.empty())
    problem =
        std::string(name) + " is for a measurement; --combine takes --json, --csv, --plot, --margin and --samples.";
  else if (options.combine.size() < 2)
    problem = "--combine takes the JSON files of at least two launches.";
  return problem.empty();
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

void add_options(CLI::App& app, Options& options) {
  app.add_option(
         "collective", options.collective_word,
         "allreduce, reduce, bcast, alltoall, allgather, barrier, gather, scatter, reduce_scatter, "
         "reduce_scatter_block, all of them; of MPI alone alltoallv and allgatherv (papaya's too), gatherv, scatterv; "
         "with i before it, nonblocking, and its overlap with a computation; several of them with commas between; a "
         "weakly consistent "
         "collective: " +
             weak_names() + "; or kernels: papaya's reduction kernels, without MPI")
      ->type_name("COLLECTIVE[,...]");
  app.add_option(
         "-m,--sizes", options.sizes_word,
         "message sizes in bytes, of alltoall and allgather those of the block: MIN, then twice as much each (or "
         "FACTOR times), and MAX")
      ->type_name("MIN:MAX[:FACTOR]|BYTES")
      ->capture_default_str();
  app.add_option("-i,--iterations", options.iterations,
                 "timed calls per row; without it, as many as --precision takes, in --seconds at most")
      ->check(CLI::Range(1, 100000000))
      ->type_name("N");
  app.add_option(
         "-x,--warmup", options.warmup,
         "calls before the first timed one; without it 12 (native 3), and up to 212 while they take less than 0.02 s")
      ->check(CLI::Range(0, 1000000))
      ->type_name("N");
  app.add_option("--rounds", options.rounds, "how often the algorithms take turns at most; without it 20, with -i 10")
      ->check(CLI::Range(1, 1000))
      ->type_name("N");
  app.add_option(
         "--seconds", options.seconds,
         "time per row at most, beyond the six turns that an interval takes; where -i does not say how many calls")
      ->check(CLI::Range(0.001, 3600.0))
      ->type_name("S")
      ->capture_default_str();
  app.add_option("--precision", options.precision,
                 "a row is done when half of the 95 % interval of its median is at most so many percent of it")
      ->check(CLI::Range(0.0, 100.0))
      ->type_name("PERCENT")
      ->capture_default_str();
  app.add_option("--margin", options.margin, "what is so close to native, in percent, is the SAME")
      ->check(CLI::Range(0.0, 100.0))
      ->type_name("PERCENT")
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
                 "who arrives late: none, random, ascending, descending, first-late, last-late, half-late, straggler, "
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
  app.add_option("--samples", options.samples, "values of a row in the JSON at most, from all its turns alike")
      ->check(CLI::Range(0, 10000000))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--csv", options.csv, "write the results as CSV")->type_name("FILE");
  app.add_option("--plot", options.plot,
                 "draw size against excess as SVG, of one collective; of weakly consistent ones slack against time, "
                 "waiting and calls per second, or size against time")
      ->type_name("FILE");
  app.add_option("--combine", options.combine,
                 "instead of measuring: the JSON files of several launches, whose differences enter the intervals")
      ->type_name("FILE...");
  app.add_option("--tests", options.tests,
                 "nonblocking: MPI_Test during the computation, whose time does not count as such")
      ->check(CLI::Range(0, 1000000))
      ->type_name("N")
      ->capture_default_str();
  add_weak_options(app, options);
  app.add_option("--mpi", options.mpi, "which MPI, where the launcher does not tell: openmpi or mpich")
      ->check(CLI::IsMember({"openmpi", "mpich"}))
      ->type_name("NAME");
}

bool finish(Options& options, std::string& problem) {
  if (!options.combine.empty()) return finish_combine(options, problem);
  if (options.collective_word.empty()) {
    problem = "COLLECTIVE is required, such as allreduce.";
    return false;
  }
  join_parameters(options.algorithms);
  if (!finish_collective(options, problem)) return false;
  if (options.kernels) {
    if (const std::string_view name = of_collectives_only(options); !name.empty())
      problem = std::string(name) +
                " is for collectives; kernels, measured in each cache and in memory, take --json and --csv.";
    return problem.empty();
  }
  if (options.rounds == 0) options.rounds = options.iterations > 0 ? 10 : 20;
  if (!parse_sizes(options.sizes_word, options.sizes, problem) || !finish_pattern(options, problem) ||
      !finish_mode(options, problem) || !finish_weak(options, problem) ||
      (!options.weak && !finish_algorithms(options, problem)))
    return false;
  const auto is_of_doubles = [](const Operation& one) { return is_reduction(one.collective); };
  if (options.weak || std::any_of(options.operations.begin(), options.operations.end(), is_of_doubles))
    for (const std::size_t bytes : options.sizes)
      if (bytes % sizeof(double) != 0) {
        problem = std::string(options.weak ? "weakly consistent collectives" : "reductions") +
                  " are measured with doubles: " + std::to_string(bytes) + " bytes are no multiple of 8.";
        return false;
      }
  if (!options.plot.empty() && !options.weak &&
      (options.operations.size() != 1 || options.operations[0].collective == Collective::barrier)) {
    problem = "--plot draws one collective over its message sizes.";
    return false;
  }
  return true;
}

bool parse(std::vector<std::string> words, Options& options, std::string& problem) {
  return parse_words(std::move(words), options, problem) && finish(options, problem);
}

}  // namespace papaya::bench
