// report.txt: header, verdict, what to know before trusting the figures, tables, where the files are.
#include <fmt/format.h>

#include "profiler/report/report.hpp"
#include "profiler/report/text/layout.hpp"
#include "profiler/report/text/sections.hpp"

namespace papaya::report {
namespace {

std::string render(const Report& report) {
  std::string page;
  for (const ApproxFigures& figures : report.approx) page += wrap("PAPAYA_APPROX: " + figures.sentence() + ".", "", 0);
  for (const WrongResult& one : report.wrong_results) page += wrap("PAPAYA_VERIFY: " + one.sentence() + ".", "", 0);
  if (!page.empty()) page += "\n";
  if (report.usable) page += header_text(report) + "\n";
  page += wrap(report.verdict, "", 0);
  if (!report.in_short.empty()) page += wrap("In short: " + report.in_short, "", 0);
  for (std::size_t i = 0; i < report.next.size(); ++i)
    page += wrap((i == 0 ? "Next: " : "Then: ") + report.next[i], "", 0);
  if (!report.notes.empty()) page += "\nNote\n";
  for (const std::string& note : report.notes) page += wrap(note, "  - ", 4);
  if (!report.usable) return page;
  page += pending_text(report);
  page += rank_times_text(report);
  page += efficiencies_text(report);
  page += functions_text(report);
  page += collectives_text(report);
  page += sizes_text(report);
  page += imbalance_text(report);
  page += waits_text(report);
  page += late_ranks_text(report);
  page += what_if_text(report);
  page += usage_text(report);
  page += costly_calls_text(report);
  page += whole_run_text(report);
  page += horovod_text(report);
  page += call_sites_text(report);
  page += phases_text(report);
  page += weak_text(report);
  page += weak_sites_text(report);
  page += weak_phases_text(report);
  page += inside_text(report);
  page += savings_text(report);
  page += trials_text(report);
  page += algorithms_text(report);
  page += communicators_text(report);
  page +=
      "\n" + wrap(fmt::format("Files in {}: report.txt is this page, report.json has the same figures for programs, "
                              "rank-*.pap is what the ranks recorded; `papaya report` makes the first two from them, "
                              "with the names of functions.",
                              report.folder),
                  "", 0);
  return page;
}

}  // namespace

std::string to_text(const Report& report) noexcept {
  try {
    return render(report);
  } catch (...) {
    return {};  // out of memory
  }
}

}  // namespace papaya::report
