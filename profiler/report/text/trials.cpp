// What PAPAYA_ADAPT has tried.
#include <fmt/format.h>

#include <algorithm>

#include "profiler/read/units.hpp"
#include "profiler/report/text/layout.hpp"
#include "profiler/report/text/sections.hpp"

namespace papaya::report {
namespace {

constexpr std::size_t widest_name = 24;

std::string sizes_of(const TrialFigures& figures) {
  if (!figures.has_bytes) return "-";
  return fmt::format("up to {}", bytes_text(static_cast<double>(figures.most_bytes)));
}

}  // namespace

std::string trials_text(const Analysis& analysis) {
  if (analysis.trials.empty()) return {};
  Table table(
      "Trials (PAPAYA_ADAPT: MPI and algorithms take turns in the calls of one class of sizes, and the quickest stays; "
      "calls until the last trial ended or something changed, below them what a call took in it beyond waiting; lost: "
      "by trying, a rank)",
      3, {"call", "communicator", "bytes", "calls", "trials", "changes", "lost", "in use"}, true);
  const std::size_t shown = std::min(most_call_sites_listed, analysis.trials.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const TrialFigures& figures = analysis.trials[i];
    std::vector<std::string> below;
    for (std::string line : {figures.site_text(), figures.tried_text(), figures.change_text(), figures.arrivals_text()})
      if (!line.empty()) below.push_back(std::move(line));
    table.add({figures.name, shortened(figures.communicator, widest_name), sizes_of(figures), count_text(figures.calls),
               count_text(figures.trials), count_text(figures.changes), time_text(figures.spent_ns), figures.algorithm},
              std::move(below));
  }
  std::string page = table.text();
  if (shown < analysis.trials.size())
    page += fmt::format("  and {} more, in report.json\n", analysis.trials.size() - shown);
  return page;
}

}  // namespace papaya::report
