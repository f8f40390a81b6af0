#include "options.hpp"

#include <CLI/CLI.hpp>
#include <map>

namespace {

const std::map<std::string, Allreduce> allreduces = {
    {"ssp", Allreduce::ssp}, {"consistent", Allreduce::consistent}, {"native", Allreduce::native}};
const std::map<std::string, Exchange> exchanges = {{"updates", Exchange::updates}, {"models", Exchange::models}};
const std::map<std::string, Straggling> stragglings = {{"none", Straggling::none},
                                                       {"fixed", Straggling::fixed},
                                                       {"rotating", Straggling::rotating},
                                                       {"random", Straggling::random}};

template <typename T>
std::string name_in(const std::map<std::string, T>& names, T value) {
  for (const auto& [name, one] : names)
    if (one == value) return name;
  return {};
}

// An option whose value is one of some names.
template <typename T>
CLI::Option* add_choice(CLI::App& app, const std::string& option, T& value, const std::map<std::string, T>& names,
                        const std::string& help) {
  std::vector<std::string> known;
  for (const auto& [name, one] : names) known.push_back(name);
  return app
      .add_option_function<std::string>(
          option, [&value, &names](const std::string& name) { value = names.at(name); }, help)
      ->check(CLI::IsMember(known))
      ->default_str(name_in(names, value));
}

void add_data(CLI::App& app, Options& options) {
  CLI::Option* file =
      app.add_option("--ratings", options.file,
                     "file of ratings: MovieLens' u.data, ratings.dat or ratings.csv (default: generated)")
          ->group("Data");
  const auto add = [&](const std::string& name, auto& value, const std::string& help) {
    return app.add_option(name, value, help)->capture_default_str()->excludes(file)->group("Data");
  };
  add("--users", options.generated.users, "generated users")->check(CLI::Range(1, 100000000));
  add("--items", options.generated.items, "generated items")->check(CLI::Range(1, 10000000));
  add("--count", options.generated.ratings, "generated ratings")->check(CLI::Range(10, 2000000000));
  add("--rank", options.generated.rank, "rank of the generated matrix")->check(CLI::Range(1, 1000));
  add("--noise", options.generated.noise, "standard deviation of what is added to it, in stars")
      ->check(CLI::Range(0.0, 10.0));
  app.add_option("--held-out", options.held_out, "share of the ratings that the error is measured on")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 0.9))
      ->group("Data");
  app.add_option("--seed", options.generated.seed, "of all that is random")->capture_default_str()->group("Data");
}

void add_training(CLI::App& app, Options& options) {
  const auto add = [&](const std::string& name, auto& value, const std::string& help) {
    return app.add_option(name, value, help)->capture_default_str()->group("Training");
  };
  add("--factors", options.factors, "of each user and item: the rank of the model")->check(CLI::Range(1, 1000));
  add("--learning-rate", options.learning_rate, "of a step")->check(CLI::Range(1e-9, 10.0));
  add("--regularisation", options.regularisation, "of a step")->check(CLI::Range(0.0, 10.0));
  add("--batch", options.batch, "ratings that all ranks together take in an iteration")
      ->check(CLI::Range(1, 2000000000));
  add("--iterations", options.iterations, "at most")->check(CLI::Range(1, 100000000));
  add("--target", options.target, "end when the error is at most this; 0: never")->check(CLI::Range(0.0, 100.0));
}

}  // namespace

std::string name_of(Allreduce allreduce) {
  return name_in(allreduces, allreduce);
}
std::string name_of(Exchange exchange) {
  return name_in(exchanges, exchange);
}
std::string name_of(Straggling straggling) {
  return name_in(stragglings, straggling);
}

Parsed parse(int argc, char** argv, Options& options) {
  CLI::App app("Matrix factorisation by stochastic gradient descent, over an allreduce that may be stale.",
               "matrix_factorisation");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_data(app, options);
  add_training(app, options);
  const auto add = [&](const std::string& name, auto& value, const std::string& help) {
    return app.add_option(name, value, help)->capture_default_str()->group("Allreduce");
  };
  add_choice(app, "--allreduce", options.allreduce, allreduces,
             "ssp: stale synchronous parallel, papaya's; consistent: MPI_Allreduce, papaya's (needs papaya run); "
             "native: MPI_Allreduce, MPI's own")
      ->group("Allreduce");
  CLI::Option* slack = add("--slack", options.slack, "of ssp: how many iterations old others' contributions may be")
                           ->check(CLI::Range(0, 255));
  CLI::Option* algorithm = app.add_option("--algorithm", options.algorithm,
                                          "NAME[:parameter=value,...] as papaya info --algorithms lists them for "
                                          "ssp_allreduce or MPI_Allreduce (default: papaya's choice)")
                               ->group("Allreduce");
  add_choice(app, "--exchange", options.exchange, exchanges,
             "updates: all ranks' updates of the items add up; models: the ranks' newest items are averaged")
      ->group("Allreduce");
  add_choice(app, "--straggler", options.straggling, stragglings,
             "who is late: fixed: the last rank; rotating: each rank in turn; random: a rank drawn in each iteration")
      ->group("Straggler");
  CLI::Option* delay = app.add_option("--delay-ms", options.delay_ms, "by how much, in each iteration")
                           ->capture_default_str()
                           ->check(CLI::Range(0.0, 60000.0))
                           ->group("Straggler");
  app.add_option("--json", options.json, "file for what was measured in each iteration");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return {false, 0, app.help()};
  } catch (const CLI::ParseError& error) {
    return {false, 2, std::string(error.what()) + "; --help lists the options."};
  }
  if (!slack->empty() && options.allreduce != Allreduce::ssp)
    return {false, 2, "--slack is for --allreduce ssp: the others have none."};
  if (!algorithm->empty() && options.allreduce == Allreduce::native)
    return {false, 2, "--algorithm is for --allreduce ssp or consistent: MPI chooses its own."};
  if (!delay->empty() && options.straggling == Straggling::none)
    return {false, 2, "--delay-ms needs a straggler: --straggler fixed, rotating or random."};
  if (options.file.empty() && options.generated.ratings > 0.5 * options.generated.users * options.generated.items)
    return {false, 2, "--count is over half of --users times --items: take fewer ratings, or more users or items."};
  return {true, 0, {}};
}
