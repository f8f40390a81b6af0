// papaya doctor: what would keep papaya from seeing or speeding up a job here, and what to do about it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/command.hpp"
#include "tools/doctor/checks.hpp"

namespace papaya {
namespace {

using doctor::Check;
using doctor::Checks;
using doctor::Level;

struct Options {
  std::vector<std::string> words;  // the program and its arguments
  bool json = false;
};

const char* environment(const char* name) {
  return std::getenv(name);
}

constexpr const char* name_of(Level level) {
  return level == Level::ok ? "ok" : level == Level::warning ? "warning" : "problem";
}

std::size_t count(const Checks& checks, Level level) {
  return static_cast<std::size_t>(
      std::count_if(checks.begin(), checks.end(), [&](const Check& one) { return one.level == level; }));
}

std::string summary_of(const Checks& checks) {
  const std::size_t problems = count(checks, Level::problem);
  const std::size_t warnings = count(checks, Level::warning);
  const auto text = [](std::size_t number, const char* what) {
    return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
  };
  if (problems > 0)
    return fmt::format("{}, {}: papaya will not work here as it is.", text(problems, "problem"),
                       text(warnings, "warning"));
  if (warnings > 0) return fmt::format("{}: papaya works here, with these limits.", text(warnings, "warning"));
  return "All is well.";
}

std::string to_text(const Checks& checks) {
  std::string page;
  for (const Check& check : checks)
    page += fmt::format("{:<8} {:<14} {}\n", name_of(check.level), check.name, check.finding);
  return page + "\n" + summary_of(checks) + "\n";
}

std::string to_json(const Checks& checks, const doctor::Job& job, const doctor::Overhead& overhead) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const Check& check : checks)
    list.push_back({{"name", check.name}, {"level", name_of(check.level)}, {"finding", check.finding}});
  const auto number = [](double ns) { return ns < 0 ? Json(nullptr) : Json(ns); };
  const Json object = {{"summary", summary_of(checks)},
                       {"problems", count(checks, Level::problem)},
                       {"warnings", count(checks, Level::warning)},
                       {"ranks", job.ranks},
                       {"ranks_here", job.node_ranks},
                       {"checks", std::move(list)},
                       {"overhead_ns",
                        {{"no_frames", number(overhead.no_frames)},
                         {"one_frame", number(overhead.one_frame)},
                         {"four_frames", number(overhead.four_frames)}}}};
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int examine(const Options& options) {
  const doctor::Job job = doctor::job_of(environment);
  if (job.rank != 0) return exit_fine;  // rank 0 speaks for all
  Checks checks;
  doctor::check_installation(job, checks);
  if (!options.words.empty()) doctor::check_program(options.words.front(), job, checks);
  doctor::check_other_tools(checks);
  const Settings settings = doctor::check_settings(checks);
  if (!options.words.empty()) doctor::check_filter(options.words, checks);
  doctor::check_machine(job, settings, checks);
  doctor::check_output(job, settings, checks);
  std::error_code error;
  const doctor::Overhead overhead = doctor::measure_overhead(std::filesystem::temp_directory_path(error).string());
  doctor::check_overhead(overhead, checks);
  std::cout << (options.json ? to_json(checks, job, overhead) : to_text(checks));
  std::cout.flush();
  return count(checks, Level::problem) > 0 ? exit_failed : exit_fine;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand(
      "doctor",
      "Check what would keep papaya from working here: [mpirun -n N] papaya doctor [OPTIONS] [PROGRAM [ARGUMENTS...]]");
  auto options = std::make_shared<Options>();
  command->add_flag("--json", options->json, "Print JSON instead of text");
  command->prefix_command();
  command->footer(
      "PROGRAM is looked at, not run: its MPI, its Fortran, how it is linked, and by its ARGUMENTS whether\n"
      "PAPAYA_INCLUDE and PAPAYA_EXCLUDE leave it out. Options come before it.\n"
      "Exit codes: 0 fine, perhaps with warnings; 1 a problem was found; 2 usage.");
  command->callback([command, options, &exit_code] {
    options->words = command->remaining();
    if (!options->words.empty() && options->words.front().starts_with('-'))
      throw CLI::ExtrasError({options->words.front()});
    exit_code = examine(*options);
  });
}

}  // namespace papaya
