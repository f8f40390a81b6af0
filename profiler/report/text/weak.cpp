// Weakly consistent collectives, their call sites and phases.
#include <fmt/format.h>

#include <utility>

#include "profiler/read/units.hpp"
#include "profiler/report/text/layout.hpp"
#include "profiler/report/text/sections.hpp"

namespace papaya::report {
namespace {

// Waited, stale, most, took part, saved.
std::vector<std::string> weak_cells(const WeakSums& sums) {
  const bool has_age = sums.aged_calls > 0;
  return {time_text(sums.waited_ns), has_age ? fmt::format("{:.2f}", sums.staleness) : "-",
          has_age ? count_text(sums.most_staleness) : "-", share_text(sums.share),
          sums.compared == 0    ? "-"
          : sums.saved_ns() < 0 ? "-" + time_text(-sums.saved_ns())
                                : time_text(sums.saved_ns())};
}

std::vector<std::string> weak_row(std::vector<std::string> first, const WeakSums& sums) {
  for (std::string& cell : weak_cells(sums)) first.push_back(std::move(cell));
  return first;
}

// "rank 2, 83 %": whom the others would have waited for most, and how much of it was for that one.
std::string awaited_text(const WeakSite& site) {
  if (site.awaited.empty()) return "-";
  const WeakAwaited& most = site.awaited.front();
  return fmt::format("rank {}, {}", most.rank, share_text(share_of(most.waiting_ns, site.sums.consistent_waiting_ns)));
}

}  // namespace

std::string weak_text(const Analysis& analysis) {
  Table table(
      "Weakly consistent collectives (calls, time and waiting summed over ranks; stale: calls that the oldest "
      "contribution to a result is behind, on average and at most; took part: of the elements or ranks. Saved, an "
      "estimate: what ranks would have waited in consistent collectives, with the same work between calls, less what "
      "they waited)",
      2, {"collective", "algorithm", "calls", "time", "waited", "stale", "most", "took part", "saved"});
  for (const WeakFigures& figures : analysis.weak) {
    const WeakSums& sums = figures.sums;
    std::string below = figures.parameters.empty() ? "" : figures.parameters + "; ";
    below += bytes_text(static_cast<double>(sums.bytes));
    if (sums.compared > 0)
      below += fmt::format("; consistent: {} of waiting, in {} of which the record has all ranks",
                           time_text(sums.consistent_waiting_ns), counted(sums.compared, "call", "calls"));
    table.add(
        weak_row({figures.collective, figures.algorithm, count_text(sums.calls), time_text(sums.inside_ns)}, sums),
        {below});
  }
  return table.empty() ? std::string() : table.text();
}

std::string weak_sites_text(const Analysis& analysis) {
  Table table(
      "Call sites of weakly consistent collectives (as above, as far as the record goes back; late: whom ranks would "
      "have waited for most in consistent collectives, and how much of that waiting was for it)",
      1, {"collective", "calls", "time", "waited", "stale", "most", "took part", "saved", "late"});
  for (const WeakFigures& figures : analysis.weak) {
    std::size_t listed = 0;
    for (const WeakSite& site : figures.sites) {
      if (site.frames.empty() || listed == most_call_sites_listed) continue;
      ++listed;
      std::vector<std::string> row =
          weak_row({figures.collective, count_text(site.sums.calls), time_text(site.sums.inside_ns)}, site.sums);
      row.push_back(awaited_text(site));
      table.add(std::move(row), {call_site_text(site.frames) +
                                 (site.ended.empty() ? "" : "; waited for at " + call_site_text(site.ended))});
    }
  }
  return table.empty() ? std::string() : table.text();
}

std::string weak_phases_text(const Analysis& analysis) {
  Table table("Weakly consistent collectives in the phases of the program (as above, as far as the record goes back)",
              2, {"phase", "collective", "calls", "time", "waited", "stale", "most", "took part", "saved"});
  for (const WeakFigures& figures : analysis.weak)
    for (const WeakPhase& phase : figures.phases)
      table.add(weak_row({phase.name.empty() ? "(none)" : phase.name, figures.collective, count_text(phase.sums.calls),
                          time_text(phase.sums.inside_ns)},
                         phase.sums));
  return table.empty() ? std::string() : table.text();
}

}  // namespace papaya::report
