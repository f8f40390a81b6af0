#include "tools/bench/weak_combine.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/bench/weak_options.hpp"

namespace papaya::bench {

namespace {

using Json = nlohmann::json;

template <class T>
std::optional<T> optional_of(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional<T>(json.get<T>());
}

}  // namespace

std::optional<WeakFigures> weak_figures_of(const Json& row) {
  const auto name = row.at("collective").get<std::string>();
  if (!weak_called(name)) return std::nullopt;
  WeakFigures of;
  of.collective = name;
  of.slack = optional_of<int>(row.at("slack"));
  of.threshold = optional_of<double>(row.at("threshold"));
  of.of = optional_of<std::string>(row.at("of")).value_or("");
  of.aggregation = row.at("aggregation") == "mean" ? Aggregation::mean : Aggregation::maximum;
  of.mean_ratio = optional_of<double>(row.at("mean_ratio"));
  of.calls_per_second = optional_of<double>(row.at("calls_per_second"));
  if (!row.contains("waited_us")) return of;
  const Json& waited = row.at("waited_us");
  of.waited_us =
      Summary{waited.at("mean").get<double>(), waited.at("p50").get<double>(), waited.at("p99").get<double>(),
              waited.at("max").get<double>(), waited.at("min").get<double>()};
  of.staleness_mean = row.at("staleness_mean").get<double>();
  of.staleness_max = row.at("staleness_max").get<double>();
  of.ranks_mean = row.at("ranks_mean").get<double>();
  of.ranks_least = row.at("ranks_least").get<double>();
  of.share_mean = row.at("share_mean").get<double>();
  of.share_least = row.at("share_least").get<double>();
  of.residual_mean = row.at("residual_mean").get<double>();
  return of;
}

bool is_same_weak(const std::optional<WeakFigures>& a, const std::optional<WeakFigures>& b) {
  if (!a || !b) return !a && !b;
  return a->collective == b->collective && a->slack == b->slack && a->threshold == b->threshold && a->of == b->of;
}

WeakFigures united_weak(const std::vector<const Row*>& rows) {
  WeakFigures all = *rows.front()->weak;
  std::vector<double> ratios, rates, medians;
  double calls = 0;
  // Means are over all calls.
  all.staleness_mean = all.ranks_mean = all.share_mean = all.residual_mean = 0;
  if (all.waited_us) all.waited_us->mean = 0;
  for (const Row* const row : rows) {
    const WeakFigures& one = *row->weak;
    const auto own = static_cast<double>(row->iterations);
    calls += own;
    if (one.mean_ratio) ratios.push_back(*one.mean_ratio);
    if (one.calls_per_second) rates.push_back(*one.calls_per_second);
    all.staleness_mean += own * one.staleness_mean;
    all.ranks_mean += own * one.ranks_mean;
    all.share_mean += own * one.share_mean;
    all.residual_mean += own * one.residual_mean;
    all.staleness_max = std::max(all.staleness_max, one.staleness_max);
    all.ranks_least = std::min(all.ranks_least, one.ranks_least);
    all.share_least = std::min(all.share_least, one.share_least);
    if (!all.waited_us || !one.waited_us) continue;
    medians.push_back(one.waited_us->p50);
    all.waited_us->mean += own * one.waited_us->mean;
    all.waited_us->min = std::min(all.waited_us->min, one.waited_us->min);
    all.waited_us->p99 = std::max(all.waited_us->p99, one.waited_us->p99);
    all.waited_us->max = std::max(all.waited_us->max, one.waited_us->max);
  }
  for (double* const sum : {&all.staleness_mean, &all.ranks_mean, &all.share_mean, &all.residual_mean})
    *sum /= std::max(calls, 1.0);
  if (all.waited_us) {
    all.waited_us->mean /= std::max(calls, 1.0);
    all.waited_us->p50 = median(medians);
  }
  if (!ratios.empty()) all.mean_ratio = median(ratios);
  if (!rates.empty()) all.calls_per_second = median(rates);
  return all;
}

}  // namespace papaya::bench
