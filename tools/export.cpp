// papaya export: rules of a tuning file in the form that an MPI library itself reads.
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tools/command.hpp"
#include "tools/export_rules.hpp"
#include "tools/mpich_rules.hpp"
#include "tools/openmpi_rules.hpp"
#include "tools/recorded_run.hpp"
#include "tools/ucc_rules.hpp"
#include "tuning/load.hpp"

namespace papaya {

namespace {

struct Options {
  std::string format;
  std::string file;
  std::string output;
  std::string library;
  ExportFacts facts;
  std::string arrivals = "any";
};

int fail(const std::string& sentence) {
  fmt::print(stderr, "papaya export: {}\n", sentence);
  return exit_failed;
}

const tuning::NativeLibrary& library_of(std::string_view format) {
  return *std::find_if(tuning::native_libraries.begin(), tuning::native_libraries.end(),
                       [&](const tuning::NativeLibrary& one) { return format.starts_with(one.field); });
}

// Where the dynamic linker finds MPICH. Empty: it does not.
std::string mpich_here() {
  for (const char* const name : {"libmpich.so.12", "libmpi.so.12"}) {
    void* const handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (handle == nullptr) continue;
    link_map* map = nullptr;
    const std::string path = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
    dlclose(handle);
    if (!path.empty()) return path;
  }
  return "";
}

std::string rules_of_mpich(const Options& options, const tuning::TuningFile& file, std::string& problem) {
  const std::string path = options.library.empty() ? mpich_here() : options.library;
  if (path.empty()) {
    problem =
        "there is no libmpich.so.12 here, whose choice is for what the rules do not speak of: --library names it.";
    return "";
  }
  std::ifstream stream(path, std::ios::binary);
  const std::string library((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  if (library.empty()) {
    problem = path + " cannot be read.";
    return "";
  }
  std::string reason;
  const auto tree = options.format == "mpich" ? MpichTree::algorithms : MpichTree::device;
  const std::string rules = mpich_rules(file, options.facts, tree, library, reason);
  if (!reason.empty()) problem = path + ": " + reason;
  return rules;
}

std::string rules_in(const Options& options, const tuning::TuningFile& file, std::string& problem) {
  if (options.format.starts_with("mpich")) return rules_of_mpich(options, file, problem);
  if (options.format == "ucc") return ucc_rules(file, options.facts);
  return openmpi_rules(file, options.facts, options.format == "openmpi" ? OpenMpiFormat::text : OpenMpiFormat::json);
}

int run(Options& options) {
  std::string problem;
  const std::string text = tuning::load(options.file, problem);
  if (!problem.empty()) return fail(options.file + " " + problem + ".");
  if (!tuning::is_json(text))
    return fail(options.file + " is no tuning file in JSON, which alone knows algorithms of MPI.");
  std::vector<std::string> warnings;
  const tuning::TuningFile file = tuning::read_tuning_file(text, warnings);
  for (const std::string& warning : warnings)
    fmt::print(stderr, "papaya: {}\n", tuning::warning_naming(options.file, warning));
  const auto arrivals = std::find(tuning::arrival_names.begin(), tuning::arrival_names.end(), options.arrivals);
  options.facts.arrivals = static_cast<tuning::ArrivalClass>(arrivals - tuning::arrival_names.begin());
  const std::string rules = rules_in(options, file, problem);
  if (!problem.empty()) return fail(problem);
  if (rules.empty())
    return fail(fmt::format("no rule for such communicators and arrivals says which of {}'s algorithms is to be used.",
                            library_of(options.format).name));
  if (!write_output("papaya export", options.output, [&](std::ostream& out) { out << rules; })) return exit_failed;
  return warnings.empty() ? exit_fine : exit_partial;
}

}  // namespace

void add_export(CLI::App& app, int& exit_code) {
  CLI::App* const command =
      app.add_subcommand("export", "Write what a tuning file says for Open MPI, MPICH or UCC itself");
  auto options = std::make_shared<Options>();
  command
      ->add_option("format", options->format,
                   "openmpi: rules of Open MPI before 6; openmpi-json: of version 6; mpich: the tree of MPICH's "
                   "algorithms; mpich-ch4: the one of its device, to go with it; ucc: UCC's variables")
      ->required()
      ->check(CLI::IsMember({"openmpi", "openmpi-json", "mpich", "mpich-ch4", "ucc"}));
  command->add_option("file", options->file, "Tuning file in JSON, whose rules with native name algorithms of MPI")
      ->required();
  command->add_option("--nodes", options->facts.nodes, "That communicators are on (default: 1)")
      ->check(at_least_one())
      ->type_name("N");
  command->add_flag("--oversubscribed", options->facts.oversubscribed, "There are more ranks than cores");
  const std::vector<std::string> classes(tuning::arrival_names.begin(), tuning::arrival_names.end());
  command->add_option("--arrivals", options->arrivals, "The program's arrival pattern (default: any)")
      ->check(CLI::IsMember(classes))
      ->type_name("CLASS");
  command
      ->add_option("--library", options->library,
                   "MPICH's library, with what it chooses by itself (default: the libmpich.so.12 of this machine)")
      ->type_name("FILE");
  command->add_option("-o,--output", options->output, "Write to this file instead of standard output");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace papaya
