// The report of a run: load its folder, work the figures out, render them. Nothing else here throws.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/analysis/analysis.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

// An analysis in words.
struct Report : Analysis {
  std::string verdict;             // one sentence
  std::string in_short;            // for everybody; may be empty, as `next`
  std::vector<std::string> next;   // what to do, the most promising first
  std::vector<std::string> notes;  // one sentence or two each: what to know before trusting the figures
};

// `observe` and `progress` as for `analyse`.
Report report_on(const Run& run, const CallObserver& observe = {}, const Progress& progress = {}) noexcept;
// With other processes that read with this one, number 0 of `readers`.
Report report_on(const Run& run, Readers& readers) noexcept;

// Makes its verdict and what follows from it, anew where frames have got names since. Throws when out of memory.
void put_in_words(Report& report);

// For people, at most 100 columns wide.
std::string to_text(const Report& report) noexcept;

// For programs; docs/trace_format.md lists the fields. Every number is finite, what was not measured is null.
std::string to_json(const Report& report) noexcept;

// As TALP of DLB writes its own: the efficiencies of the run and of each phase. Empty where they are not known.
std::string to_talp(const Report& report) noexcept;

// Writes report.txt and report.json into the run's folder, which is called `name` in them, each at once (a reader sees
// the old or the new file, never half a one). On failure false, with the reason as one line in `one_line_error` where
// that is not null. `readers`, unless null: processes that read with this one, which is number 0. The others
// call help_to_write_reports().
bool write_reports(const std::string& folder, const std::string& name, std::string* one_line_error,
                   Readers* readers = nullptr) noexcept;
void help_to_write_reports(const std::string& folder, Readers& readers) noexcept;

// For a job that is still running: the calls that some of its ranks have been inside for `at_least_s` seconds and more,
// by the wall clock, the longest first: who is there, who is missing and what those did last. Empty if there are none.
std::string stall_text(const Analysis& analysis, std::int64_t now_unix_ns, double at_least_s);
// Of one of them in one sentence: where the job is held and by whom.
std::string stall_headline(const PendingCall& call);

}  // namespace papaya::report
