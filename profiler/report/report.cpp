#include "profiler/report/report.hpp"

#include "profiler/report/notes.hpp"
#include "profiler/report/verdict.hpp"

namespace papaya::report {

Report report_on(const Run& run, const CallObserver& observe, const Progress& progress) noexcept {
  Report report{analyse(run, observe, progress), {}, {}};
  try {
    report.verdict = verdict_on(report);
    report.notes = notes_on(report);
  } catch (...) {  // out of memory, for these sentences too
  }
  return report;
}

}  // namespace papaya::report
