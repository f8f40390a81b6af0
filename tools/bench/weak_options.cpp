#include "tools/bench/weak_options.hpp"

#include <algorithm>

namespace papaya::bench {

std::vector<WeakCollective> weak_benchmarked() {
  std::vector<WeakCollective> all;
  for (const WeakDescriptor* one : weak_registry())
    if (all.empty() || all.back() != one->collective) all.push_back(one->collective);
  return all;
}

std::optional<WeakCollective> weak_called(std::string_view name) {
  for (const WeakCollective one : weak_benchmarked())
    if (name_of(one) == name) return one;
  return std::nullopt;
}

std::string weak_names() {
  std::string names;
  for (const WeakCollective one : weak_benchmarked()) names += (names.empty() ? "" : ", ") + std::string(name_of(one));
  return names;
}

Bound bound_of(WeakCollective collective) noexcept {
  switch (collective) {
    case WeakCollective::ssp_allreduce:
      return Bound::slack;
    case WeakCollective::threshold_bcast:
    case WeakCollective::threshold_reduce:
      return Bound::threshold;
    case WeakCollective::sparse_allreduce:
      return Bound::share;
    case WeakCollective::partial_allreduce:
    case WeakCollective::group_allreduce:
      break;
  }
  return Bound::none;
}

Collective counterpart(WeakCollective collective) noexcept {
  switch (collective) {
    case WeakCollective::threshold_bcast:
      return Collective::bcast;
    case WeakCollective::threshold_reduce:
      return Collective::reduce;
    default:
      return Collective::allreduce;
  }
}

void add_weak_options(CLI::App& app, Options& options) {
  app.add_option("--compute", options.compute_us,
                 "weakly consistent collectives: how long every rank computes before each call, in microseconds; "
                 "--pattern and --skew make it longer")
      ->check(CLI::Range(0.0, 1e8))
      ->type_name("US");
  app.add_option("--slack", options.slacks, "ssp_allreduce: how old contributions may be; 0,1,2,4,8 without it")
      ->delimiter(',')
      ->check(CLI::Range(0, 1000000))
      ->type_name("N,...");
  app.add_option("--threshold", options.thresholds,
                 "threshold collectives: shares, above 0 and at most 1; 0.25,0.5,0.75,1 without it")
      ->delimiter(',')
      ->type_name("SHARE,...");
  app.add_option("--of", options.of_word, "what --threshold is a share of: data, as without it, or ranks")
      ->check(CLI::IsMember({"data", "ranks"}))
      ->type_name("WHAT");
  app.add_option("--share", options.shares,
                 "sparse_allreduce: shares of the elements, above 0 and at most 1; 0.001,0.01,0.1 without it")
      ->delimiter(',')
      ->type_name("SHARE,...");
}

namespace {

struct Given {
  std::string_view name;
  bool is_given;
  Bound bound;  // none: for all of them
};

std::vector<Given> given(const Options& options) {
  return {{"--compute", options.compute_us >= 0, Bound::none},
          {"--slack", !options.slacks.empty(), Bound::slack},
          {"--threshold", !options.thresholds.empty(), Bound::threshold},
          {"--of", !options.of_word.empty(), Bound::threshold},
          {"--share", !options.shares.empty(), Bound::share}};
}

bool are_shares(std::string_view option, const std::vector<double>& shares, std::string& problem) {
  for (const double share : shares)
    if (!(share > 0 && share <= 1)) {
      problem = std::string(option) + " takes shares above 0 and at most 1, such as 0.25.";
      return false;
    }
  return true;
}

bool are_names(const Options& options, std::string& problem) {
  std::vector<std::string_view> names = {"native", "auto"};
  for (const WeakDescriptor* one : weak_registry())
    if (one->collective == *options.weak) names.push_back(one->name);
  for (const std::string& word : options.algorithms) {
    const std::string_view name = std::string_view(word).substr(0, word.find(':'));
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    problem = unknown(name, "algorithm of " + std::string(name_of(*options.weak)), names);
    return false;
  }
  return true;
}

}  // namespace

std::string_view of_weak_ones(const Options& options) {
  for (const Given& one : given(options))
    if (one.is_given) return one.name;
  return {};
}

bool finish_weak(Options& options, std::string& problem) {
  if (!options.weak) {
    if (const std::string_view name = of_weak_ones(options); !name.empty())
      problem = std::string(name) + " is for weakly consistent collectives: " + weak_names() + ".";
    return problem.empty();
  }
  const Bound bound = bound_of(*options.weak);
  for (const Given& one : given(options))
    if (one.is_given && one.bound != Bound::none && one.bound != bound) {
      problem = std::string(one.name) + " does not bound " + std::string(name_of(*options.weak)) + ".";
      return false;
    }
  if (options.compute_us >= 0 && options.mode != Mode::free) {
    problem = "--mode " + std::string(name_of(options.mode)) + " has no computation; --compute is for --mode free.";
    return false;
  }
  options.compute_us = std::max(options.compute_us, 0.0);
  options.of_ranks = options.of_word == "ranks";
  if (options.slacks.empty()) options.slacks = {0, 1, 2, 4, 8};
  if (options.thresholds.empty()) options.thresholds = {0.25, 0.5, 0.75, 1};
  if (options.shares.empty()) options.shares = {0.001, 0.01, 0.1};
  return are_shares("--threshold", options.thresholds, problem) && are_shares("--share", options.shares, problem) &&
         are_names(options, problem);
}

std::vector<WeakCandidate> weak_candidates(const Options& options) {
  std::vector<std::string> selections = options.algorithms;
  std::erase(selections, "native");
  if (options.algorithms.empty())
    for (const WeakDescriptor* one : weak_registry())
      if (one->collective == *options.weak) selections.emplace_back(one->name);
  std::vector<WeakCandidate> all = {{"native"}};
  for (const std::string& selection : selections) switch (bound_of(*options.weak)) {
      case Bound::none:
        all.push_back({selection});
        break;
      case Bound::slack:
        for (const int slack : options.slacks) all.push_back({selection, slack, std::nullopt});
        break;
      case Bound::threshold:
        for (const double share : options.thresholds) all.push_back({selection, std::nullopt, share});
        break;
      case Bound::share:
        for (const double share : options.shares) all.push_back({selection, std::nullopt, share});
        break;
    }
  return all;
}

}  // namespace papaya::bench
