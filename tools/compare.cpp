// papaya compare: runs before a change against runs after it.
#include "profiler/analysis/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/read/units.hpp"
#include "tools/command.hpp"
#include "tools/recorded_run.hpp"
#include "tools/symbols.hpp"

namespace papaya {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::vector<std::string> before;
  std::vector<std::string> after;
  std::string output;
  bool json = false;
};

constexpr std::size_t most_sites_listed = 10;

// ---- text

std::string line(const std::string& what, const report::Change& change) {
  return fmt::format("  {:<16} {:>9} {:>9}   {:<6} {:<7}  {}\n", what, report::time_text(change.before_ns),
                     report::time_text(change.after_ns), report::ratio_text(change.ratio),
                     name_of(change.judgement.outcome), change.judgement.reason);
}

std::string row_text(const report::ComparedRow& row) {
  const std::string calls =
      row.calls_before == row.calls_after
          ? report::count_text(row.calls_before) + (row.calls_before == 1 ? " call" : " calls")
          : fmt::format("{} and {} calls", report::count_text(row.calls_before), report::count_text(row.calls_after));
  return fmt::format("{}, {}, {}\n", row.key.name, row.key.where, calls) + line("time inside", row.inside) +
         line("waiting", row.waiting) + line("excess", row.excess);
}

std::string differences_text(const std::string& title, const std::vector<report::Difference>& differences) {
  if (differences.empty()) return {};
  std::string page = "\n" + title + "\n";
  for (const report::Difference& one : differences)
    page += fmt::format("  {}\n    before: {}\n    after:  {}\n", one.name, one.before.empty() ? "-" : one.before,
                        one.after.empty() ? "-" : one.after);
  return page;
}

std::string to_text(const report::Comparison& comparison) {
  std::string page = comparison.verdict + "\n";
  if (!comparison.notes.empty()) page += "\nNote\n";
  for (const std::string& note : comparison.notes) page += "  - " + note + "\n";
  page += fmt::format("\n  {:<16} {:>9} {:>9}   {:<6} {:<7}  {}\n", "", "before", "after", "ratio", "",
                      "its 95 % interval");
  page += line("run", comparison.run_time) + line("in collectives", comparison.collectives);
  for (const bool sites : {false, true}) {
    std::size_t listed = 0;
    std::size_t all = 0;
    for (const report::ComparedRow& row : comparison.rows) {
      if (row.key.is_site != sites || (sites && ++all > most_sites_listed)) continue;
      if (listed++ == 0)
        page += fmt::format(
            "\n{} (means of a call, over its ranks{})\n", sites ? "Call sites" : "Collectives by size",
            comparison.runs_before > 1 && comparison.runs_after > 1 ? "; geometric ones over the runs" : "");
      page += row_text(row);
    }
    if (all > listed) page += fmt::format("  and {} more, with --json\n", all - listed);
  }
  for (const auto& [side, keys] :
       {std::pair("before", &comparison.only_before), std::pair("after", &comparison.only_after)})
    if (!keys->empty()) {
      page += fmt::format("\nOnly {}\n", side);
      for (const report::RowKey& key : *keys) page += fmt::format("  {}, {}\n", key.name, key.where);
    }
  page += differences_text("Algorithms that differ", comparison.algorithms);
  page += differences_text("Settings that differ", comparison.settings);
  page += differences_text("Other differences", comparison.facts);
  return page;
}

// ---- JSON

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json to_object(const report::Change& change) {
  return {{"before_us", number(change.before_ns / 1e3)},
          {"after_us", number(change.after_ns / 1e3)},
          {"ratio", number(change.ratio)},
          {"low", number(change.low)},
          {"high", number(change.high)},
          {"outcome", name_of(change.judgement.outcome)},
          {"reason", change.judgement.reason}};
}

Json to_array(const std::vector<report::Difference>& differences) {
  Json array = Json::array();
  for (const report::Difference& one : differences)
    array.push_back({{"name", one.name}, {"before", one.before}, {"after", one.after}});
  return array;
}

Json key_of(const report::RowKey& key) {
  return {{"name", key.name}, {key.is_site ? "call_site" : "size", key.where}};
}

Json to_array(const std::vector<report::RowKey>& keys) {
  Json array = Json::array();
  for (const report::RowKey& key : keys) array.push_back(key_of(key));
  return array;
}

std::string to_json(const report::Comparison& comparison) {
  Json collectives = Json::array();
  Json sites = Json::array();
  for (const report::ComparedRow& row : comparison.rows) {
    Json object = key_of(row.key);
    object.update({{"calls_before", row.calls_before},
                   {"calls_after", row.calls_after},
                   {"inside", to_object(row.inside)},
                   {"waiting", to_object(row.waiting)},
                   {"excess", to_object(row.excess)}});
    (row.key.is_site ? sites : collectives).push_back(std::move(object));
  }
  const Json object = {{"verdict", comparison.verdict},
                       {"notes", comparison.notes},
                       {"runs_before", comparison.runs_before},
                       {"runs_after", comparison.runs_after},
                       {"run", to_object(comparison.run_time)},
                       {"in_collectives", to_object(comparison.collectives)},
                       {"collectives", std::move(collectives)},
                       {"call_sites", std::move(sites)},
                       {"only_before", to_array(comparison.only_before)},
                       {"only_after", to_array(comparison.only_after)},
                       {"algorithms", to_array(comparison.algorithms)},
                       {"settings", to_array(comparison.settings)},
                       {"facts", to_array(comparison.facts)}};
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// ---- the command

// False if the run cannot be used; `exit_code` keeps the worst there was.
bool load(std::string folder, std::vector<report::RunSamples>& side, int& exit_code) {
  report::Run run;
  int own = exit_fine;
  if (!load_recorded_run("papaya compare", folder, run, own)) {
    exit_code = own;
    return false;
  }
  own = exit_code_of("papaya compare", run);
  if (run.files.empty()) {
    exit_code = own;
    return false;
  }
  side.push_back(report::samples_of(run, [](const CallSites& sites) { symbolise(sites); }));
  if (own == exit_fine && side.back().partial) own = exit_partial;
  exit_code = std::max(exit_code, own);
  return true;
}

int compare_runs(Options options) {
  if (options.after.empty() && options.before.size() == 2) {
    options.after.push_back(options.before.back());
    options.before.pop_back();
  }
  if (options.after.empty()) {
    std::cerr
        << "papaya compare: name two runs, or several on each side of --with: papaya compare A1 A2 --with B1 B2.\n";
    return exit_usage;
  }
  std::vector<report::RunSamples> before, after;
  int exit_code = exit_fine;
  for (const std::string& folder : options.before)
    if (!load(folder, before, exit_code)) return exit_code;
  for (const std::string& folder : options.after)
    if (!load(folder, after, exit_code)) return exit_code;
  report::Comparison comparison = report::compare(before, after);
  for (const std::string& folder : options.after)
    if (std::find(options.before.begin(), options.before.end(), folder) != options.before.end())
      comparison.notes.push_back(folder + " is on both sides.");
  if (comparison.rows.empty()) {
    std::cerr << "papaya compare: the runs have no call in common that all its ranks recorded, so there is "
                 "nothing to compare.\n";
    for (const std::string& note : comparison.notes) std::cerr << "  " << note << "\n";
    return exit_failed;
  }
  const std::string page = options.json ? to_json(comparison) : to_text(comparison);
  return write_output("papaya compare", options.output, [&](std::ostream& out) { out << page; }) ? exit_code
                                                                                                 : exit_failed;
}

}  // namespace

void add_compare(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand("compare", "Compare runs before and after a change");
  auto options = std::make_shared<Options>();
  command
      ->add_option("folders", options->before,
                   "Folders of the runs: one before and one after; or those before, with those after behind --with")
      ->required();
  command->add_option("--with", options->after, "Folders of the runs after the change");
  command->add_flag("--json", options->json, "Print JSON instead of text");
  command->add_option("-o,--output", options->output, "Write to this file instead of standard output");
  command->footer(
      "Exit codes: 0 fine, whether faster or slower; 1 nothing to compare; 2 usage, no such folder; 3 the data is "
      "partial; 4 recorded by "
      "another version of papaya.");
  command->callback([options, &exit_code] { exit_code = compare_runs(*options); });
}

}  // namespace papaya
