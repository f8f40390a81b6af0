#include "profiler/report/report.hpp"

#include <utility>

#include "profiler/report/advice.hpp"
#include "profiler/report/notes.hpp"
#include "profiler/report/verdict.hpp"

namespace papaya::report {

void put_in_words(Report& report) {
  Verdict verdict = verdict_on(report);
  Advice advice = advice_on(report, verdict);
  report.in_short = std::move(advice.in_short);
  report.next = std::move(advice.next);
  report.verdict = std::move(verdict.text);
}

Report report_on(const Run& run, const CallObserver& observe, const Progress& progress) noexcept {
  Report report{analyse(run, observe, progress), {}, {}, {}, {}};
  try {
    put_in_words(report);
    report.notes = notes_on(report);
  } catch (...) {  // out of memory, for these sentences too
  }
  return report;
}

}  // namespace papaya::report
