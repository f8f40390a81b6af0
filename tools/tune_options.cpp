#include "tools/tune_options.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "tools/parse_words.hpp"

namespace papaya {

namespace {

constexpr double longest_s = 7 * 24 * 3600.0;

// The first option given that is for measuring; empty: there is none.
std::string_view of_measuring(const TuneOptions& options) {
  const std::pair<std::string_view, bool> given[] = {{"--collectives", !options.collectives.empty()},
                                                     {"--sizes", !options.sizes.empty()},
                                                     {"--patterns", !options.patterns.empty()},
                                                     {"--skew", options.skew_us >= 0},
                                                     {"--natives", options.natives},
                                                     {"--budget", !options.budget_word.empty()},
                                                     {"--from", !options.from.empty()},
                                                     {"--mpi", !options.mpi.empty()}};
  for (const auto& [name, is_given] : given)
    if (is_given) return name;
  return {};
}

}  // namespace

bool parse_seconds(const std::string& text, double& seconds) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string_view unit(end);
  const double factor = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (end == text.c_str() || factor == 0 || !(number > 0) || !(number * factor <= longest_s)) return false;
  seconds = number * factor;
  return true;
}

void add_options(CLI::App& app, TuneOptions& options) {
  app.add_option("files", options.files,
                 "What papaya bench wrote with --json, of any ranks and patterns; without one it measures, and the "
                 "launcher stands in front");
  app.add_option("-o,--output", options.output,
                 "Write the tuning file here, and what was chosen to standard output; of what it measures, without "
                 "this, to papaya-tuning.json");
  app.add_option("--collectives", options.collectives,
                 "What to measure: allreduce, reduce, bcast, alltoall, allgather, barrier, gather, "
                 "scatter, reduce_scatter, reduce_scatter_block; without it, all of them")
      ->delimiter(',')
      ->type_name("NAME,...");
  app.add_option("-m,--sizes", options.sizes, "Message sizes, as papaya bench takes them; without it, 8:1M:8")
      ->type_name("MIN:MAX[:FACTOR]");
  app.add_option("--patterns", options.patterns,
                 "Who arrives late, as papaya bench --pattern has it; without it, none, random and straggler")
      ->delimiter(',')
      ->type_name("PATTERN,...");
  app.add_option("--skew", options.skew_us,
                 "How late, in microseconds; without it 20 times as long as a message of the size takes")
      ->check(CLI::Range(0.0, 1e8))
      ->type_name("US");
  app.add_flag("--natives", options.natives,
               "Also measure each of MPI's own algorithms, for papaya export; takes about twice as long");
  app.add_option("--from", options.from,
                 "Measure what a recorded run did, with its arrivals: its collectives and sizes, on communicators of "
                 "as many ranks as are launched")
      ->type_name("FOLDER");
  app.add_option("--budget", options.budget_word,
                 "How long it may measure; without it, 5m. What is left then is measured by the same command again")
      ->type_name("TIME[s|m|h]");
  app.add_option("--mpi", options.mpi, "Which MPI, where the launcher does not tell: openmpi or mpich")
      ->check(CLI::IsMember({"openmpi", "mpich"}))
      ->type_name("NAME");
}

bool finish(TuneOptions& options, std::string& problem) {
  if (const std::string_view name = of_measuring(options); !options.files.empty() && !name.empty()) {
    problem = std::string(name) + " is for measuring; of files that are measured it takes -o.";
    return false;
  }
  if (!options.files.empty()) return true;
  if (options.output.empty()) options.output = "papaya-tuning.json";
  if (!options.from.empty() && (!options.sizes.empty() || !options.patterns.empty())) {
    problem = "--from has the sizes and arrivals of the run; give neither --sizes nor --patterns with it.";
    return false;
  }
  if (!options.budget_word.empty() && !parse_seconds(options.budget_word, options.budget_s)) {
    problem = "--budget " + options.budget_word + " is no time: 90s, 5m or 1h, a week at most.";
    return false;
  }
  return true;
}

bool parse(std::vector<std::string> words, TuneOptions& options, std::string& problem) {
  return parse_words(std::move(words), options, problem) && finish(options, problem);
}

}  // namespace papaya
