#include "output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

namespace {

double total(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::string allreduce(const Options& options) {
  if (options.allreduce != Allreduce::ssp) return name_of(options.allreduce);
  return fmt::format("ssp, slack {}", options.slack);
}

nlohmann::json settings(const Options& options) {
  nlohmann::json made = {{"allreduce", name_of(options.allreduce)},
                         {"exchange", name_of(options.exchange)},
                         {"factors", options.factors},
                         {"learning_rate", options.learning_rate},
                         {"regularisation", options.regularisation},
                         {"batch", options.batch},
                         {"held_out", options.held_out},
                         {"seed", options.generated.seed},
                         {"straggler", name_of(options.straggling)}};
  if (options.allreduce == Allreduce::ssp) made["slack"] = options.slack;
  if (options.straggling != Straggling::none) made["delay_ms"] = options.delay_ms;
  return made;
}

std::ofstream opened(const std::string& name) {
  std::ofstream file(name);
  if (!file) throw std::runtime_error(name + " cannot be written: name a file in a folder that there is.");
  return file;
}

}  // namespace

std::string summary(const Options& options, const Part& part, const Run& run, const History& history) {
  const double seconds = history.mean_seconds.back();
  std::string text = fmt::format(
      "{} rank{}, {} users, {} items, {} ratings and {} held out\n{} ({}): {} iterations in {:.3f} s, error {:.4f}; "
      "{:.0f} % "
      "of the time in the collective",
      run.ranks, run.ranks == 1 ? "" : "s", run.users, run.items, part.all_training, part.all_held_out,
      allreduce(options), history.info, history.seconds.size(), history.seconds.back(), history.final_error,
      100 * total(history.collective) / seconds);
  if (options.allreduce == Allreduce::ssp)
    text +=
        fmt::format(", {:.0f} % waiting; results on average {:.1f} iterations old, at most {:.0f}",
                    100 * total(history.waited) / seconds, total(history.age) / static_cast<double>(history.age.size()),
                    *std::max_element(history.oldest.begin(), history.oldest.end()));
  text += '\n';
  if (options.target > 0) {
    const std::size_t at = reached(history, options.target);
    text += at < history.error.size() ? fmt::format("error {} reached after {:.3f} s, in iteration {}\n",
                                                    options.target, history.seconds[at], at + 1)
                                      : fmt::format("error {} not reached\n", options.target);
  }
  return text;
}

void check_writable(const std::string& file) {
  opened(file);
}

void write_json(const Options& options, const Part& part, const Run& run, const History& history) {
  nlohmann::json made = {{"program", "matrix_factorisation"},
                         {"mpi", run.mpi},
                         {"ranks", run.ranks},
                         {"data",
                          {{"file", options.file.empty() ? nlohmann::json() : nlohmann::json(options.file)},
                           {"users", run.users},
                           {"items", run.items},
                           {"training", part.all_training},
                           {"held_out", part.all_held_out}}},
                         {"settings", settings(options)},
                         {"algorithm", history.info},
                         {"setup_seconds", history.setup_seconds},
                         {"final_error", history.final_error},
                         {"iterations",
                          {{"seconds", history.seconds},
                           {"mean_seconds", history.mean_seconds},
                           {"error", history.error},
                           {"collective_seconds", history.collective},
                           {"age", history.age},
                           {"oldest", history.oldest}}}};
  if (options.allreduce == Allreduce::ssp) made["iterations"]["waited_seconds"] = history.waited;
  if (options.target > 0) {
    const std::size_t at = reached(history, options.target);
    const bool is_reached = at < history.error.size();
    made["target"] = {{"error", options.target},
                      {"iteration", is_reached ? nlohmann::json(at + 1) : nlohmann::json()},
                      {"seconds", is_reached ? nlohmann::json(history.seconds[at]) : nlohmann::json()}};
  }
  std::ofstream file = opened(options.json);
  file << made.dump(1) << '\n';
  file.close();
  if (!file) throw std::runtime_error(options.json + " could not be written in full.");
}
