#include "tools/bench/combine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tools/bench/output.hpp"
#include "tools/bench/weak_combine.hpp"
#include "tools/bench/weak_options.hpp"
#include "tools/bench/weak_output.hpp"

namespace papaya::bench {

namespace {

using Json = nlohmann::json;

enum : int { fine = 0, failed = 1, usage = 2 };

// Throws Json::exception where a file has something else in that place.
Summary summary_of(const Json& json) {
  return {json.at("mean").get<double>(), json.at("p50").get<double>(), json.at("p99").get<double>(),
          json.at("max").get<double>(), json.at("min").get<double>()};
}

std::optional<double> optional_of(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional<double>(json.get<double>());
}

Row row_of(const Json& json, std::string& problem) {
  Row row;
  const auto name = json.at("collective").get<std::string>();
  row.weak = weak_figures_of(json);
  const auto operation = row.weak ? Operation{counterpart(*weak_called(name))} : operation_called(name);
  if (!operation) {
    problem = name + " cannot be combined";
    return row;
  }
  row.collective = operation->collective;
  row.form = operation->form;
  row.algorithm = json.at("algorithm").get<std::string>();
  row.bytes = json.at("bytes").get<std::size_t>();
  row.iterations = json.at("iterations").get<std::uint64_t>();
  row.excess_us = summary_of(json.at("excess_us"));
  row.inside_us = summary_of(json.at("inside_us"));
  row.excess_max_us = summary_of(json.at("excess_max_us"));
  row.excess_mean_us = summary_of(json.at("excess_mean_us"));
  if (json.contains("root_inside_us")) row.root_inside_us = summary_of(json.at("root_inside_us"));
  row.ratio_to_native = optional_of(json.at("ratio_to_native"));
  row.limit_us = optional_of(json.at("limit_us"));
  row.values_us = json.at("samples_us").get<Turns>();
  row.imbalance_us = json.at("imbalance_us").get<double>();
  row.skew_us = json.at("skew_us").get<double>();
  row.alpha_us = json.at("alpha_us").get<double>();
  row.checked_results = json.at("checked_results").get<std::uint64_t>();
  row.wrong_results = json.at("wrong_results").get<std::uint64_t>();
  row.early_exits = json.at("early_exits").get<std::uint64_t>();
  row.missed_arrivals = json.at("missed_arrivals").get<double>();
  row.replaced = optional_of(json.at("replaced"));
  if (json.contains("overlap")) {
    const Json& overlap = json.at("overlap");
    row.overlap = OverlapFigures{summary_of(overlap.at("pure_us")), summary_of(overlap.at("compute_us")),
                                 summary_of(overlap.at("total_us")), overlap.at("percent").get<double>(), std::nullopt};
  }
  return row;
}

bool is_same_row(const Row& a, const Row& b) {
  return a.collective == b.collective && a.form == b.form && a.algorithm == b.algorithm && a.bytes == b.bytes &&
         is_same_weak(a.weak, b.weak);
}

// What all of `rows` say together; of the rest, such as the limit, the first one's.
Row united(const std::vector<const Row*>& rows, double margin) {
  Row row = *rows.front();
  std::vector<double> ratios, ratios_to_native, overlaps;
  const auto unite = [&](Summary Row::*figures) {
    std::vector<double> medians;
    double calls = 0, sum = 0;
    Summary all = rows.front()->*figures;
    for (const Row* const one : rows) {
      const Summary& own = one->*figures;
      medians.push_back(own.p50);
      calls += static_cast<double>(one->iterations);
      sum += own.mean * static_cast<double>(one->iterations);
      all.min = std::min(all.min, own.min);
      all.p99 = std::max(all.p99, own.p99);
      all.max = std::max(all.max, own.max);
    }
    all.mean = calls > 0 ? sum / calls : 0;
    all.p50 = median(medians);
    row.*figures = all;
    return medians;
  };
  for (Summary Row::*const figures : {&Row::inside_us, &Row::excess_max_us, &Row::excess_mean_us}) unite(figures);
  row.launches_us = unite(&Row::excess_us);
  row.iterations = row.checked_results = row.wrong_results = row.early_exits = 0;
  row.values_us.clear();
  for (const Row* const one : rows) {
    row.iterations += one->iterations;
    row.checked_results += one->checked_results;
    row.wrong_results += one->wrong_results;
    row.early_exits += one->early_exits;
    row.values_us.insert(row.values_us.end(), one->values_us.begin(), one->values_us.end());
    if (one->ratio_to_native) ratios_to_native.push_back(*one->ratio_to_native);
    // Weakly consistent ones are judged by their means: see compare_to_native.
    if (const std::optional<double> ratio = one->weak ? one->weak->mean_ratio : one->ratio_to_native)
      ratios.push_back(*ratio);
    if (one->overlap) overlaps.push_back(one->overlap->percent);
    if (one->limit_us && row.limit_us) row.limit_us = std::min(*row.limit_us, *one->limit_us);
    if (one->replaced && row.replaced) row.replaced = std::min(*row.replaced, *one->replaced);
  }
  row.interval_us = report::interval_of_few(row.launches_us);
  row.stop = Stop::none;
  if (row.overlap) row.overlap->percent = median(overlaps);
  if (row.weak) row.weak = united_weak(rows);
  if (!ratios_to_native.empty()) row.ratio_to_native = median(ratios_to_native);
  if (ratios.empty()) return row;
  row.ratio_lowest = *std::min_element(ratios.begin(), ratios.end());
  row.ratio_highest = *std::max_element(ratios.begin(), ratios.end());
  if (row.algorithm == "native") return row;
  row.ratio_interval = report::interval_of_few(ratios);
  row.judgement = report::judge(row.ratio_interval, margin / 100);
  return row;
}

// Why two launches are no two of the same measurement; empty if they are.
std::string difference(const Result& a, const Result& b) {
  const auto differs = [](std::string_view what, const auto& first, const auto& second) {
    return first == second ? std::string() : fmt::format("{} {} and {}", what, first, second);
  };
  for (const std::string& one :
       {differs("ranks:", a.ranks, b.ranks), differs("nodes:", a.nodes, b.nodes), differs("cores:", a.cores, b.cores),
        differs("MPI:", a.mpi, b.mpi), differs("pattern:", a.pattern, b.pattern), differs("mode:", a.mode, b.mode),
        differs("root:", a.root, b.root), differs("compute:", a.compute_us.value_or(0), b.compute_us.value_or(0))})
    if (!one.empty()) return one;
  return "";
}

}  // namespace

bool read_launch(const std::string& text, Result& result, std::string& problem) {
  try {
    const Json json = Json::parse(text);
    result.ranks = json.at("ranks").get<int>();
    result.nodes = json.at("nodes").get<int>();
    result.cores = json.at("cores").get<int>();
    result.mpi = json.at("mpi").get<std::string>();
    result.pattern = json.at("pattern").get<std::string>();
    result.mode = json.at("mode").get<std::string>();
    result.skew_us = json.at("skew_us").get<double>();
    result.mif = optional_of(json.at("mif"));
    result.seed = json.at("seed").get<std::uint64_t>();
    result.rounds = json.at("rounds").get<int>();
    result.root = json.at("root").get<int>();
    result.precision = json.at("precision").get<double>();
    result.clock_error_us = json.at("clock_error_us").get<double>();
    result.others_share = json.at("others_share").get<double>();
    result.machine.line_us = json.at("line_us").get<double>();
    result.machine.further_line_us = json.at("further_line_us").get<double>();
    if (json.contains("compute_us")) result.compute_us = json.at("compute_us").get<double>();
    if (json.at("launches").get<int>() != 1) problem = "it is already made of several launches";
    for (const Json& one : json.at("rows"))
      if (problem.empty()) result.rows.push_back(row_of(one, problem));
    if (problem.empty() && result.rows.empty()) problem = "it has no rows";
  } catch (const Json::exception&) {
    problem = "it is no file of papaya bench --json of this version";
  }
  return problem.empty();
}

Result combined(const std::vector<Result>& launches, double margin, std::string& problem) {
  Result all = launches.front();
  all.rows.clear();
  all.launches = static_cast<int>(launches.size());
  all.margin = margin;
  for (const Result& one : launches) {
    if (problem.empty()) problem = difference(launches.front(), one);
    all.skew_us = std::max(all.skew_us, one.skew_us);
    all.clock_error_us = std::max(all.clock_error_us, one.clock_error_us);
    all.others_share = std::max(all.others_share, one.others_share);
  }
  for (const Row& row : launches.front().rows) {
    std::vector<const Row*> same;
    for (const Result& one : launches) {
      const auto found =
          std::find_if(one.rows.begin(), one.rows.end(), [&](const Row& other) { return is_same_row(row, other); });
      if (found != one.rows.end()) same.push_back(&*found);
    }
    if (same.size() == launches.size()) all.rows.push_back(united(same, margin));
  }
  if (problem.empty() && all.rows.empty()) problem = "they have no row in common";
  return all;
}

int combine(const Options& options) {
  std::vector<Result> launches;
  std::string problem;
  for (const std::string& name : options.combine) {
    errno = 0;
    std::ifstream file(name, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (!file.is_open() || file.bad())
      problem = fmt::format("cannot read {}: {}", name, std::strerror(errno));
    else if (!read_launch(text, launches.emplace_back(), problem))
      problem = fmt::format("{}: {}", name, problem);
    if (!problem.empty()) break;
  }
  Result all;
  if (problem.empty()) {
    all = combined(launches, options.margin, problem);
    if (!problem.empty()) problem = "the launches measured different things: " + problem;
  }
  if (!problem.empty()) {
    std::fprintf(stderr, "papaya bench: %s.\n", problem.c_str());
    return usage;
  }
  all.samples = static_cast<std::size_t>(options.samples);
  std::string page = header_text(all) + fmt::format("{} launches\n", all.launches);
  const bool is_weak = all.rows.front().weak.has_value();
  if (is_weak) page += weak_table_head(all.rows);
  for (auto row = all.rows.begin(); row != all.rows.end(); ++row) {
    if (is_weak) {
      page += weak_table_row(*row);
      continue;
    }
    if (row == all.rows.begin() || row->collective != std::prev(row)->collective)
      page += table_head(all, {row->collective, row->form});
    page += table_row(*row, all.launches);
  }
  std::fputs((page + remarks_text(all)).c_str(), stdout);
  return write_files(options, all) && std::none_of(all.rows.begin(), all.rows.end(), is_wrong) ? fine : failed;
}

}  // namespace papaya::bench
