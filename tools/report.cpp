// papaya report: the report of a run from its per-rank files.
#include "profiler/report/report.hpp"

#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "tools/command.hpp"
#include "tools/recorded_run.hpp"
#include "tools/report_page.hpp"
#include "tools/symbols.hpp"

namespace papaya {
namespace {

struct Options {
  std::string folder;
  std::string output;
  bool json = false;
  bool html = false;
  bool talp = false;
};

int exit_code_of(const report::Report& analysis) {
  if (analysis.other_version) return exit_version;
  if (!analysis.usable) return exit_failed;
  return analysis.partial ? exit_partial : exit_fine;
}

int report_run(Options options) {
  if (options.html && !has_report_page()) {
    std::cerr
        << "papaya report: this papaya was built without the chart library of --html: install libjs-chart.js (Debian, "
           "Ubuntu) and build it again.\n";
    return exit_usage;
  }
  report::Run run;
  int exit_code = exit_fine;
  if (!load_recorded_run("papaya report", options.folder, run, exit_code)) return exit_code;
  std::optional<report::Pictures> pictures;
  report::CallObserver observer;
  if (options.html) {
    pictures.emplace(run);
    observer = [&](const report::ComparedCall& call) { pictures->add(call); };
  }
  ProgressBar progress;
  report::Report analysis =
      report::report_on(run, observer, [&](std::size_t done, std::size_t total) { progress.show(done, total); });
  progress.clear();
  symbolise(analysis);
  exit_code = exit_code_of(analysis);
  if (!analysis.usable) {
    std::cerr << "papaya report: no usable record in " << options.folder << ".\n";
    if (analysis.notes.empty()) std::cerr << "  It holds no rank-NNNNN.pap file.\n";
    for (const std::string& note : analysis.notes) std::cerr << "  " << note << "\n";
    return exit_code;
  }
  if (options.talp && !analysis.efficiency.is_known) {
    std::cerr << "papaya report: the efficiencies of this run are not known: PAPAYA_PROFILE=collectives left out the "
                 "time in MPI's other functions, or ranks are missing.\n";
    return exit_failed;
  }
  const std::string page = pictures       ? to_report_page(analysis, *pictures)
                           : options.json ? report::to_json(analysis)
                           : options.talp ? report::to_talp(analysis)
                                          : report::to_text(analysis);
  if (page.empty()) {
    std::cerr << "papaya report: not enough memory.\n";
    return exit_failed;
  }
  return write_output("papaya report", options.output, [&](std::ostream& out) { out << page; }) ? exit_code
                                                                                                : exit_failed;
}

}  // namespace

void add_report(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand("report", "Show who arrived late at which collective in a recorded run");
  auto options = std::make_shared<Options>();
  command->add_option("folder", options->folder, "Folder of the run (default: the newest papaya.*.*.* folder here)");
  CLI::Option* const json = command->add_flag("--json", options->json, "Print JSON instead of text");
  CLI::Option* const html = command->add_flag("--html", options->html, "Print a page with pictures, for a browser");
  html->excludes(json);
  command->add_flag("--talp", options->talp, "Print the efficiencies as JSON, as DLB's TALP writes them")
      ->excludes(json)
      ->excludes(html);
  command->add_option("-o,--output", options->output, "Write to this file instead of standard output");
  command->footer(
      "Exit codes: 0 fine; 1 nothing usable; 2 usage, no such folder; 3 the data is partial (records missing "
      "or "
      "damaged, or the job did not reach MPI_Finalize); 4 recorded by another version of papaya.");
  command->callback([options, &exit_code] { exit_code = report_run(*options); });
}

}  // namespace papaya
