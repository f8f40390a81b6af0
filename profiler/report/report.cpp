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

namespace {

Report in_words(Analysis analysis) noexcept {
  Report report{std::move(analysis), {}, {}, {}, {}};
  try {
    put_in_words(report);
    report.notes = notes_on(report);
  } catch (...) {  // out of memory, for these sentences too
  }
  return report;
}

}  // namespace

Report report_on(const Run& run, const CallObserver& observe, const Progress& progress) noexcept {
  return in_words(analyse(run, observe, progress));
}

Report report_on(const Run& run, Readers& readers) noexcept {
  return in_words(analyse(run, readers));
}

}  // namespace papaya::report
