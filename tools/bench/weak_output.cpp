#include "tools/bench/weak_output.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/bench/output.hpp"

namespace papaya::bench {

namespace {

std::string cut(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 2) + "..";
}

template <class T>
std::string shown(const std::optional<T>& value) {
  return value ? fmt::format("{:.4g}", static_cast<double>(*value)) : "-";
}

template <class T>
nlohmann::ordered_json to_json(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::string free_text(const Result& result) {
  std::string text = fmt::format("each rank calls {} us after its last call", short_number(*result.compute_us));
  if (result.pattern == "none") return text;
  return text + ", or later: " + result.pattern + " within " +
         (result.mif ? fmt::format("{:g} message times", *result.mif) : short_number(result.skew_us) + " us");
}

std::string weak_table_head(const std::vector<Row>& rows) {
  if (rows.empty()) return "";
  const WeakFigures& first = *rows.front().weak;
  std::string bound, of;
  for (const Row& row : rows) {
    if (row.weak->slack) bound = "slack";
    if (row.weak->threshold) bound = "share", of = row.weak->of;
  }
  return fmt::format("\n{}: time inside a call, {}, in us; ratio: of the means, to native\n{}\n", first.collective,
                     first.aggregation == Aggregation::mean ? "mean over the ranks" : "slowest rank",
                     of.empty() ? "" : "share: of the " + of + "\n") +
         fmt::format("{:>6}  {:<22}{:>6}{:>9}{:>9}{:>9}{:>9}{:>6}{:>6}{:>9}{:>7}  {:>5} {}\n", "bytes", "algorithm",
                     bound, "mean", "p50", "p99", "waited", "stale", "part", "calls/s", "stop", "ratio", "native");
}

std::string weak_table_row(const Row& row) {
  const WeakFigures& weak = *row.weak;
  const bool is_native = !weak.waited_us;
  return fmt::format("{:>6}  {:<22}{:>6}{:>9}{:>9}{:>9}{:>9}{:>6}{:>6}{:>9}{:>7}  {:>5} {}\n", short_bytes(row.bytes),
                     cut(row.algorithm, 22), weak.slack ? shown(weak.slack) : shown(weak.threshold),
                     is_wrong(row) ? "WRONG" : short_number(row.inside_us.mean), short_number(row.inside_us.p50),
                     short_number(row.inside_us.p99), is_native ? "-" : short_number(weak.waited_us->mean),
                     is_native ? "-" : short_number(weak.staleness_mean),
                     is_native ? "-" : fmt::format("{:.2f}", weak.share_mean),
                     weak.calls_per_second ? short_number(*weak.calls_per_second) : "-", name_of(row.stop),
                     weak.mean_ratio ? fmt::format("{:.2f}", *weak.mean_ratio) : "-",
                     row.judgement ? report::name_of(row.judgement->outcome) : "");
}

void add_weak_fields(const WeakFigures& figures, nlohmann::ordered_json& out) {
  out["slack"] = to_json(figures.slack);
  out["threshold"] = to_json(figures.threshold);
  out["of"] = figures.of.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(figures.of);
  out["mean_ratio"] = to_json(figures.mean_ratio);
  out["calls_per_second"] = to_json(figures.calls_per_second);
  if (!figures.waited_us) return;
  out["waited_us"] = {{"mean", figures.waited_us->mean},
                      {"p50", figures.waited_us->p50},
                      {"p99", figures.waited_us->p99},
                      {"max", figures.waited_us->max},
                      {"min", figures.waited_us->min}};
  out["staleness_mean"] = figures.staleness_mean;
  out["staleness_max"] = figures.staleness_max;
  out["ranks_mean"] = figures.ranks_mean;
  out["ranks_least"] = figures.ranks_least;
  out["share_mean"] = figures.share_mean;
  out["share_least"] = figures.share_least;
  out["residual_mean"] = figures.residual_mean;
}

std::string weak_csv_columns() {
  return ",slack,threshold,of,mean_ratio,calls_per_second,waited_mean_us,staleness_mean,staleness_max,"
         "ranks_mean,share_mean,residual_mean";
}

std::string weak_csv(const WeakFigures& figures) {
  const auto optional = [](const std::optional<double>& value) { return value ? fmt::format("{:.6g}", *value) : ""; };
  const std::string text =
      fmt::format(",{},{},{},{},{}", figures.slack ? std::to_string(*figures.slack) : "", optional(figures.threshold),
                  figures.of, optional(figures.mean_ratio), optional(figures.calls_per_second));
  if (!figures.waited_us) return text + ",,,,,,";
  return text + fmt::format(",{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g}", figures.waited_us->mean,
                            figures.staleness_mean, figures.staleness_max, figures.ranks_mean, figures.share_mean,
                            figures.residual_mean);
}

}  // namespace papaya::bench
