#include "profiler/analysis/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <string_view>
#include <utility>

#include "base/mpi_name.hpp"
#include "profiler/analysis/call_stream.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/read/clocks.hpp"
#include "profiler/read/units.hpp"

namespace papaya::report {
namespace {

constexpr std::size_t replicates = 999;
constexpr std::size_t tail = 25;   // replicates beyond each end of a 95 % interval
constexpr std::uint64_t seed = 1;  // the same answer every time
// What is shorter is not told apart: a clock read.
constexpr double shortest_ns = 10;
constexpr std::array<std::string_view, size_class_count> size_names = {"up to 1 KiB", "up to 1 MiB", "larger"};

double mean_of(std::span<const double> values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// ---- blocks of consecutive calls

double autocorrelation(std::span<const double> values, double mean) {
  double variance = 0;
  double covariance = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    variance += (values[i] - mean) * (values[i] - mean);
    if (i > 0) covariance += (values[i] - mean) * (values[i - 1] - mean);
  }
  return variance > 0 ? covariance / variance : 0;
}

// Carlstein's length for a first-order autoregression with this correlation, at least the usual cube root.
std::size_t block_length(std::span<const double> values, double mean) {
  const double n = static_cast<double>(values.size());
  const double r = std::clamp(std::abs(autocorrelation(values, mean)), 0.0, 0.99);
  const double length = std::cbrt(n) * std::max(1.0, std::pow(std::sqrt(6.0) * r / (1 - r * r), 2.0 / 3));
  return static_cast<std::size_t>(std::clamp(length, 1.0, std::max(1.0, n / 4)));
}

// Means of `replicates` resamples, each run of so many calls as there are, drawn in blocks that wrap around its end.
std::vector<double> resampled_means(const std::vector<std::span<const double>>& runs, std::mt19937_64& random) {
  std::vector<double> means(replicates, 0);
  std::size_t all = 0;
  for (const std::span<const double> run : runs) {
    if (run.empty()) continue;
    const std::size_t n = run.size();
    all += n;
    const std::size_t length = block_length(run, mean_of(run));
    std::vector<double> sums(2 * n + 1, 0);
    for (std::size_t i = 0; i < 2 * n; ++i) sums[i + 1] = sums[i] + run[i % n];
    for (double& mean : means)
      for (std::size_t drawn = 0; drawn < n;) {
        const std::size_t taken = std::min(length, n - drawn);
        const std::size_t begin = random() % n;
        mean += sums[begin + taken] - sums[begin];
        drawn += taken;
      }
  }
  for (double& mean : means) mean /= static_cast<double>(std::max<std::size_t>(all, 1));
  return means;
}

// ---- intervals

double ratio_of(double after, double before) {
  return std::max(after, shortest_ns) / std::max(before, shortest_ns);
}

void set_interval(Change& change, std::vector<double> ratios) {
  std::sort(ratios.begin(), ratios.end());
  change.low = ratios[tail - 1];
  change.high = ratios[ratios.size() - tail];
}

// Welch's interval of the ratio of two groups of runs, one value each.
void set_welch(Change& change, std::span<const double> before, std::span<const double> after) {
  struct Group {
    double mean = 0;
    double error = 0;  // squared, of the mean
    double freedom = 0;
  };
  const auto group_of = [](std::span<const double> values) {
    std::vector<double> logs;
    for (const double value : values) logs.push_back(std::log(std::max(value, shortest_ns)));
    Group group{mean_of(logs), 0, static_cast<double>(logs.size() - 1)};
    for (const double value : logs) group.error += (value - group.mean) * (value - group.mean);
    group.error /= group.freedom * static_cast<double>(logs.size());
    return group;
  };
  const Group a = group_of(before);
  const Group b = group_of(after);
  const double error = a.error + b.error;
  const double parts = a.error * a.error / a.freedom + b.error * b.error / b.freedom;
  const double half = error > 0 ? student(error * error / parts) * std::sqrt(error) : 0;
  // The means that belong to it.
  change.before_ns = std::exp(a.mean);
  change.after_ns = std::exp(b.mean);
  change.ratio = std::exp(b.mean - a.mean);
  change.low = std::exp(b.mean - a.mean - half);
  change.high = std::exp(b.mean - a.mean + half);
}

// A change of what is a part of the time inside, `inside_ns`, may be sure and small.
void judge(Change& change, double inside_ns = 0) {
  if (std::isnan(change.low)) {
    change.judgement = {Outcome::unclear, fmt::format("fewer than {} calls", fewest_calls)};
    return;
  }
  change.judgement = judge(Interval{change.low, change.high}, least_change);
  const double share = inside_ns > 0 ? std::abs(change.after_ns - change.before_ns) / inside_ns : 1;
  const bool is_change = change.judgement.outcome == Outcome::faster || change.judgement.outcome == Outcome::slower;
  if (is_change && share < least_change)
    change.judgement.reason += fmt::format("; {:.1f} % of the time inside", share * 100);
}

using Runs = std::vector<std::span<const double>>;

// `means_before` and `means_after` get the resampled means, where they were needed.
Change change_of(const Runs& before, const Runs& after, std::mt19937_64& random, std::vector<double>& means_before,
                 std::vector<double>& means_after) {
  const auto all_mean = [](const Runs& runs) {
    double sum = 0;
    std::size_t count = 0;
    for (const auto& run : runs) {
      sum += std::accumulate(run.begin(), run.end(), 0.0);
      count += run.size();
    }
    return std::pair(sum / static_cast<double>(std::max<std::size_t>(count, 1)), count);
  };
  Change change;
  const auto [mean_before, count_before] = all_mean(before);
  const auto [mean_after, count_after] = all_mean(after);
  change.before_ns = mean_before;
  change.after_ns = mean_after;
  change.ratio = ratio_of(mean_after, mean_before);
  if (before.size() > 1 && after.size() > 1) {
    std::vector<double> a, b;
    for (const auto& run : before) a.push_back(mean_of(run));
    for (const auto& run : after) b.push_back(mean_of(run));
    set_welch(change, a, b);
    return change;
  }
  means_before = resampled_means(before, random);
  means_after = resampled_means(after, random);
  if (count_before < fewest_calls || count_after < fewest_calls) return change;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < replicates; ++i) ratios.push_back(ratio_of(means_after[i], means_before[i]));
  set_interval(change, std::move(ratios));
  return change;
}

// ---- what differs

void add_differences(std::vector<Difference>& out, const std::map<std::string, std::string>& before,
                     const std::map<std::string, std::string>& after) {
  std::set<std::string> names;
  for (const auto* side : {&before, &after})
    for (const auto& [name, value] : *side) names.insert(name);
  for (const std::string& name : names) {
    const auto value_of = [&](const auto& side) { return side.contains(name) ? side.at(name) : std::string(); };
    if (value_of(before) != value_of(after)) out.push_back({name, value_of(before), value_of(after)});
  }
}

// "arrival_leader 96 %, native (the communicator has made too few calls so far) 4 %"
std::map<std::string, std::string> algorithm_texts(const RunSamples& run) {
  std::map<std::string, std::string> texts;
  for (const auto& [collective, calls] : run.algorithms) {
    std::uint64_t all = 0;
    for (const auto& [name, count] : calls) all += count;
    std::vector<std::pair<std::string, std::uint64_t>> most(calls.begin(), calls.end());
    std::stable_sort(most.begin(), most.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    std::string text;
    for (const auto& [name, count] : most)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name,
                          share_text(static_cast<double>(count) / static_cast<double>(all)));
    texts[collective] = std::move(text);
  }
  return texts;
}

// Runs of one side that differ among themselves measure more than one thing.
void add_notes(Comparison& out, std::span<const RunSamples> before, std::span<const RunSamples> after) {
  for (const auto& [side, runs] : {std::pair("before", before), std::pair("after", after)})
    for (const RunSamples& run : runs) {
      if (run.partial)
        out.notes.push_back(fmt::format("The record in {} is incomplete; what is there is compared.", run.folder));
      if (run.settings != runs.front().settings || run.facts != runs.front().facts)
        out.notes.push_back(fmt::format("{} differs from {}, both {}, in settings or other facts.", run.folder,
                                        runs.front().folder, side));
    }
  for (const Difference& fact : out.facts)
    if (fact.name == "program" || fact.name == "ranks")
      out.notes.push_back(fmt::format("The runs are of {}: {} before, {} after. Compared is what has the same name.",
                                      fact.name == "ranks" ? "different numbers of ranks" : "different programs",
                                      fact.before, fact.after));
  if (out.runs_before < 2 || out.runs_after < 2)
    out.notes.push_back(
        "With one run on a side the intervals are of the calls in it; what makes whole runs differ (other "
        "load, placement) is not "
        "in them. Several runs on each side are: papaya compare A1 A2 A3 --with B1 B2 B3.");
}

std::string verdict_of(const Comparison& out) {
  const bool by_run = !std::isnan(out.run_time.low);
  const Change& change = by_run ? out.run_time : out.collectives;
  if (std::isnan(change.low)) return "UNCLEAR: there are too few calls to tell.";
  const char* const what = by_run ? "the run" : "the time inside collectives";
  const std::string took =
      fmt::format("{}: {} is {} times what it was, 95 % interval {} to {}", name_of(change.judgement.outcome), what,
                  ratio_text(change.ratio), ratio_text(change.low), ratio_text(change.high));
  switch (change.judgement.outcome) {
    case Outcome::same:
      return fmt::format("{}, all of it within {:g} % of 1.", took, least_change * 100);
    case Outcome::faster:
      return took + ", all of it below 1.";
    case Outcome::slower:
      return took + ", all of it above 1.";
    case Outcome::unclear:
      break;
  }
  return fmt::format("{}: 1 is in it, and so is more than {:g} % of a change. More runs narrow it.", took,
                     least_change * 100);
}

std::string site_key(const std::vector<NamedFrame>& frames) {
  std::string key = call_site_text(frames);
  // An offset means something in one build only.
  for (const NamedFrame& frame : frames)
    if (frame.function.empty() && !frame.build_id.empty()) key += " " + frame.build_id.substr(0, 8);
  return key;
}

}  // namespace

RunSamples samples_of(const Run& run, const NameFrames& name_frames) {
  RunSamples out;
  const Analysis analysis = analyse(run);
  out.folder = run.folder;
  out.partial = analysis.partial;
  out.run_ns = analysis.run_ns;
  out.facts = {{"program", analysis.program},
               {"MPI", analysis.mpi},
               {"papaya", analysis.papaya_version},
               {"ranks", fmt::format("{}", analysis.ranks)},
               {"nodes", fmt::format("{}", analysis.nodes)}};
  if (!analysis.node_figures.empty()) out.facts["first host"] = analysis.node_figures.front().host;
  if (!run.files.empty()) out.facts["cores of the first node"] = fmt::format("{}", run.files.front().header.cores);
  for (const Setting& setting : run.settings)
    if (setting.name != "PAPAYA_OUTPUT") out.settings[setting.name] = setting.value;
  for (const AlgorithmFigures& row : analysis.algorithms)
    out.algorithms[row.collective]
                  [row.reason.empty() ? row.algorithm : fmt::format("{} ({})", row.algorithm, row.reason)] += row.calls;

  const Clocks clocks(run);
  // Names of call sites, each once.
  std::map<std::vector<Frame>, std::vector<NamedFrame>> sites;
  for (const RankFile& file : run.files)
    for (const std::vector<Frame>& frames : *file.call_sites) {
      std::vector<NamedFrame>& named = sites[frames];
      if (named.empty())
        for (const Frame& frame : frames) named.push_back({frame, {}, {}, 0});
    }
  std::vector<std::vector<NamedFrame>*> to_name;
  for (auto& [frames, named] : sites) to_name.push_back(&named);
  name_frames(to_name);
  // Without lines, several call sites in one function have one name: by their order in it, which a new build keeps.
  std::map<std::vector<Frame>, std::string> keys;
  std::map<std::string, std::size_t> times;
  for (const auto& [frames, named] : sites) {
    const std::string key = site_key(named);
    const std::size_t number = ++times[key];
    keys[frames] = number == 1 ? key : fmt::format("{}, call site {}", key, number);
  }

  std::vector<double> arrivals, legal;
  const auto add_call = [&](const GroupCall& call) {
    if (call.match != Match::complete || call.is_inside) return;
    const auto ranks = static_cast<double>(call.sightings.size());
    arrivals.clear();
    legal.resize(call.sightings.size());
    for (const Sighting& sighting : call.sightings) arrivals.push_back(sighting.arrival_ns);
    const Roles roles = roles_of(call);
    earliest_exits(roles, arrivals, legal);
    double inside = 0;
    double waiting = 0;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < call.sightings.size(); ++i) {
      inside += (call.sightings[i].exit_ns - arrivals[i]) / ranks;
      waiting += (legal[i] - arrivals[i]) / ranks;
      bytes = std::max(bytes, call.sightings[i].bytes);
    }
    const std::string name = mpi_name(roles.collective, Form::blocking);
    const auto add = [&](RowKey key) {
      Samples& samples = out.rows[std::move(key)];
      samples.inside_ns.push_back(inside);
      samples.waiting_ns.push_back(waiting);
      samples.excess_ns.push_back(std::max(0.0, inside - waiting));
    };
    add({false, name, std::string(size_names[static_cast<std::size_t>(size_class_of(bytes))])});
    const Sighting& lowest = call.sightings.front();
    if (const std::uint64_t site = lowest.call_site; site != 0)
      add({true, name, keys[(*run.files[lowest.file].call_sites)[site - 1]]});
  };
  Groups groups(run);
  CallStream(run, clocks, groups).read({}, add_call);
  return out;
}

Comparison compare(std::span<const RunSamples> before, std::span<const RunSamples> after) {
  Comparison out;
  out.runs_before = before.size();
  out.runs_after = after.size();
  if (before.empty() || after.empty()) return out;
  add_differences(out.facts, before.front().facts, after.front().facts);
  add_differences(out.settings, before.front().settings, after.front().settings);
  add_differences(out.algorithms, algorithm_texts(before.front()), algorithm_texts(after.front()));

  std::set<RowKey> keys_before, keys_after;
  for (const RunSamples& run : before)
    for (const auto& [key, samples] : run.rows) keys_before.insert(key);
  for (const RunSamples& run : after)
    for (const auto& [key, samples] : run.rows) keys_after.insert(key);
  std::set_difference(keys_before.begin(), keys_before.end(), keys_after.begin(), keys_after.end(),
                      std::back_inserter(out.only_before));
  std::set_difference(keys_after.begin(), keys_after.end(), keys_before.begin(), keys_before.end(),
                      std::back_inserter(out.only_after));

  std::mt19937_64 random(seed);
  // Time inside all compared calls of a run, resampled.
  std::vector<double> total_before(replicates, 0), total_after(replicates, 0);
  std::vector<double> run_totals_before(before.size(), 0), run_totals_after(after.size(), 0);
  std::uint64_t compared_calls = 0;
  for (const RowKey& key : keys_before) {
    if (!keys_after.contains(key)) continue;
    ComparedRow row;
    row.key = key;
    const auto runs_of = [&](std::span<const RunSamples> side, std::vector<double> Samples::*member) {
      Runs runs;
      for (const RunSamples& run : side)
        if (const auto found = run.rows.find(key); found != run.rows.end()) runs.push_back(found->second.*member);
      return runs;
    };
    std::vector<double> means_before, means_after;
    const auto change = [&](std::vector<double> Samples::*member) {
      means_before.clear();
      means_after.clear();
      return change_of(runs_of(before, member), runs_of(after, member), random, means_before, means_after);
    };
    row.waiting = change(&Samples::waiting_ns);
    row.excess = change(&Samples::excess_ns);
    row.inside = change(&Samples::inside_ns);
    const double inside_ns = std::max({row.inside.before_ns, row.inside.after_ns, shortest_ns});
    judge(row.inside);
    for (Change* const one : {&row.waiting, &row.excess}) judge(*one, inside_ns);
    for (const auto& run : runs_of(before, &Samples::inside_ns)) row.calls_before += run.size();
    for (const auto& run : runs_of(after, &Samples::inside_ns)) row.calls_after += run.size();
    if (!key.is_site) {
      compared_calls += std::min(row.calls_before, row.calls_after);
      const auto add = [&](std::span<const RunSamples> side, std::vector<double>& totals) {
        for (std::size_t i = 0; i < side.size(); ++i)
          if (const auto found = side[i].rows.find(key); found != side[i].rows.end())
            totals[i] += std::accumulate(found->second.inside_ns.begin(), found->second.inside_ns.end(), 0.0);
      };
      add(before, run_totals_before);
      add(after, run_totals_after);
      for (std::size_t i = 0; i < replicates && !means_before.empty(); ++i) {
        total_before[i] += means_before[i] * static_cast<double>(row.calls_before) / static_cast<double>(before.size());
        total_after[i] += means_after[i] * static_cast<double>(row.calls_after) / static_cast<double>(after.size());
      }
    }
    out.rows.push_back(std::move(row));
  }
  std::stable_sort(out.rows.begin(), out.rows.end(), [](const ComparedRow& a, const ComparedRow& b) {
    return a.inside.before_ns * static_cast<double>(a.calls_before) >
           b.inside.before_ns * static_cast<double>(b.calls_before);
  });

  const auto means = [](Change& change, std::span<const double> a, std::span<const double> b) {
    change.before_ns = mean_of(a);
    change.after_ns = mean_of(b);
    change.ratio = ratio_of(change.after_ns, change.before_ns);
  };
  std::vector<double> runs_before_ns, runs_after_ns;
  for (const RunSamples& run : before) runs_before_ns.push_back(run.run_ns);
  for (const RunSamples& run : after) runs_after_ns.push_back(run.run_ns);
  means(out.run_time, runs_before_ns, runs_after_ns);
  means(out.collectives, run_totals_before, run_totals_after);
  if (before.size() > 1 && after.size() > 1) {
    set_welch(out.run_time, runs_before_ns, runs_after_ns);
    if (!out.rows.empty()) set_welch(out.collectives, run_totals_before, run_totals_after);
  } else if (compared_calls >= fewest_calls) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < replicates; ++i) ratios.push_back(ratio_of(total_after[i], total_before[i]));
    set_interval(out.collectives, std::move(ratios));
  }
  judge(out.run_time);
  judge(out.collectives);
  if (std::isnan(out.run_time.low)) out.run_time.judgement.reason = "one run on a side";
  add_notes(out, before, after);
  out.verdict = verdict_of(out);
  return out;
}

}  // namespace papaya::report
