#include "profiler/analysis/approx.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/mpi_name.hpp"
#include "profiler/read/units.hpp"

namespace papaya::report {

namespace {

std::string error_text(double error) {
  return std::isfinite(error) ? fmt::format("{:.2g}", error) : "without bound";
}

}  // namespace

std::string ApproxFigures::sentence() const {
  const std::string_view where = places.starts_with("call site") ? "at" : "on";
  if (calls == 0) return fmt::format("no call of {} was {} {} ({})", name, where, places, bound);
  std::string text = fmt::format("{} of {} {} {} {} returned approximate results ({}", count_text(approximate),
                                 count_text(calls), name, where, places, bound);
  if (aged > 0) text += fmt::format("; used data up to {} old", counted(most_staleness, "call", "calls"));
  text += ")";
  if (approximate < calls) text += fmt::format("; the others were exact: {}", why);
  if (verified > 0)
    text += fmt::format("; relative error of {}: median {}, largest {}",
                        counted(verified, "verified result", "verified results"), error_text(median_error),
                        error_text(largest_error));
  else if (approximate > 0)
    text += "; PAPAYA_VERIFY tells how far off";
  return text;
}

std::vector<ApproxFigures> approx_figures(const Run& run) {
  std::vector<ApproxFigures> all;
  std::vector<std::vector<double>> errors;
  for (const RankFile& file : run.files)
    for (const trace::ApproxRow& row : file.approx) {
      ApproxFigures figures{.name = mpi_name(static_cast<Collective>(row.collective), Form::blocking),
                            .places = clean_text(row.places),
                            .bound = clean_text(row.bound)};
      auto found = std::find_if(all.begin(), all.end(), [&](const ApproxFigures& one) {
        return std::tie(one.name, one.places, one.bound) == std::tie(figures.name, figures.places, figures.bound);
      });
      if (found == all.end()) {
        errors.emplace_back();
        found = all.insert(all.end(), figures);
      }
      if (found->why.empty()) found->why = clean_text(row.why);
      found->calls += row.calls;
      found->approximate += row.approximate;
      found->aged += row.aged;
      found->most_staleness = std::max(found->most_staleness, row.most_staleness);
      found->verified += row.verified;
      std::vector<double>& known = errors[static_cast<std::size_t>(found - all.begin())];
      known.insert(known.end(), row.errors, row.errors + std::min(row.verified, trace::approx::error_capacity));
    }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (errors[i].empty()) continue;
    std::sort(errors[i].begin(), errors[i].end());
    all[i].median_error = errors[i][(errors[i].size() - 1) / 2];
    all[i].largest_error = errors[i].back();
  }
  return all;
}

}  // namespace papaya::report
