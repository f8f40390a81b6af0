// papaya info: what this papaya can do, read from the registry and the tables.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "algorithms/weak/weak.hpp"
#include "base/mpi_library.hpp"
#include "base/settings.hpp"
#include "base/topology.hpp"
#include "base/version.hpp"
#include "tools/command.hpp"
#include "tools/explain.hpp"
#include "tuning/selection.hpp"

namespace papaya {

namespace {

void print_environment() {
  for (const VariableRow& row : variable_rows())
    fmt::print("{:<27} {}\n{:<27}   values: {}, default: {}\n", row.name, row.help, "", row.values,
               row.fallback.empty() ? "empty" : row.fallback);
}

void print_names(Collective collective) {
  fmt::print("native\n");
  for (const Descriptor* descriptor : registry())
    if (serves(*descriptor, collective)) fmt::print("{}\n", descriptor->name);
}

void print_parameters(std::span<const Parameter> parameters) {
  for (const Parameter& parameter : parameters)
    fmt::print("    {}={} ({} to {}): {}\n", parameter.name, parameter.fallback, parameter.lowest, parameter.highest,
               parameter.help);
}

// False if there is no such weakly consistent collective.
bool print_weak_names(std::string_view collective) {
  bool is_known = false;
  for (const WeakDescriptor* descriptor : weak_registry())
    if (name_of(descriptor->collective) == collective) {
      fmt::print("{}\n", descriptor->name);
      is_known = true;
    }
  return is_known;
}

void print_weak_algorithms() {
  fmt::print("\nWeakly consistent collectives (papaya_weak.h)\n");
  std::string_view last;
  for (const WeakDescriptor* descriptor : weak_registry()) {
    const std::string_view collective = name_of(descriptor->collective);
    if (collective != last) fmt::print("{}\n", collective);
    last = collective;
    fmt::print("  {}: {}\n    {}{}{}\n", descriptor->name, descriptor->summary,
               descriptor->segment == nullptr ? "ranks on one node; " : "",
               descriptor->commutative_only ? "commutative operations; " : "", descriptor->source);
    print_parameters(descriptor->parameters);
  }
}

void print_algorithms() {
  for (std::size_t i = 0; i < collective_count; ++i) {
    const auto collective = static_cast<Collective>(i);
    Variable variable{};
    if (!tuning::variable_of(collective, variable)) continue;
    fmt::print("MPI_{} ({})\n  native\n", name_of(collective), row_of(variable).name);
    for (const Descriptor* descriptor : registry()) {
      if (descriptor->collective != collective) continue;
      const std::string sizes = descriptor->max_bytes == std::numeric_limits<std::size_t>::max()
                                    ? "any size"
                                    : fmt::format("up to {} bytes", descriptor->max_bytes);
      fmt::print("  {}: {}\n    {}{}{}{}; {}\n", descriptor->name, descriptor->summary, sizes,
                 descriptor->serves_alltoallv    ? ", MPI_Alltoallv too"
                 : descriptor->serves_allgatherv ? ", MPI_Allgatherv too"
                                                 : "",
                 descriptor->one_node ? ", ranks on one node" : "",
                 descriptor->needs_arrival_order ? ", PAPAYA_ORDER=arrival and commutative operations"
                 : descriptor->predefined_only   ? ", predefined operations"
                                                 : "",
                 descriptor->source);
      print_parameters(descriptor->parameters);
    }
  }
  print_weak_algorithms();
}

void print_flavours() {
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const auto& searched : {folder, folder.parent_path() / PAPAYA_LIBDIR})
    for (const char* flavour : flavour_names)
      if (const auto path = searched / fmt::format("libpapaya-{}.so", flavour); std::filesystem::exists(path, error))
        fmt::print("  {} ({})\n", flavour, path.string());
}

// Of --rules.
struct CallOptions {
  std::vector<std::string> call;  // collective and size
  int ranks = 0;
  int nodes = 1;
  bool oversubscribed = false;
  std::string arrivals = "any";
  std::string site;
  std::string mpi = "openmpi";
  std::string file;
};

int print_rules(const CallOptions& options) {
  Collective collective{};
  Variable variable{};
  if (!tuning::collective_of(options.call[0], collective) || !tuning::variable_of(collective, variable))
    throw CLI::ValidationError("--rules", "papaya has no algorithms for " + options.call[0]);
  std::int64_t bytes = 0;
  if (options.call.size() > 1 && !parse_bytes(options.call[1], bytes))
    throw CLI::ValidationError("--rules", options.call[1] + " is no size, such as 64K");
  if (options.call.size() == 1 && collective != Collective::barrier)
    throw CLI::ValidationError("--rules", "a size should follow " + options.call[0]);
  const int ranks = options.ranks > 0 ? options.ranks : std::max(2, topology::count(topology::allowed().cores));
  if (options.nodes > ranks) throw CLI::ValidationError("--nodes", "there are not as many ranks");
  const auto arrivals = std::find(tuning::arrival_names.begin(), tuning::arrival_names.end(), options.arrivals);
  std::vector<std::string> warnings;
  Settings settings = Settings::from_environment(environ, warnings);
  if (!options.file.empty()) settings.set(Variable::tuning, options.file);
  const std::string path(settings.text(Variable::tuning));
  std::string problem;
  const std::string text = path.empty() ? "" : tuning::load(path, problem);
  if (!problem.empty()) warnings.push_back(path + ": " + problem + ".");
  const tuning::Selection selection(settings, text, warnings);
  for (const std::string& warning : warnings)
    fmt::print(stderr, "papaya: {}\n", path.empty() ? warning : tuning::warning_naming(path, warning));
  const auto places = selection.sites();
  const auto place = std::find(places.begin(), places.end(), options.site);
  const tuning::Facts facts{.ranks = ranks,
                            .nodes = options.nodes,
                            .oversubscribed = options.oversubscribed,
                            .native_yields = options.mpi == "openmpi",
                            .may_reorder = settings.text(Variable::order) == "arrival",
                            .ranks_per_node = (ranks + options.nodes - 1) / options.nodes,
                            .arrivals = static_cast<tuning::ArrivalClass>(arrivals - tuning::arrival_names.begin()),
                            .sites = place == places.end() ? 0 : std::uint64_t{1} << (place - places.begin())};
  fmt::print("{}", explain(selection, settings, path, collective, static_cast<std::uint64_t>(bytes), facts));
  return warnings.empty() ? exit_fine : exit_failed;
}

CLI::Option* add_rules(CLI::App& command, CallOptions& options) {
  CLI::Option* const rules =
      command.add_option("--rules", options.call,
                         "which rule gives a call of COLLECTIVE and SIZE its algorithm, and why, by the environment");
  rules->expected(1, 2)->type_name("COLLECTIVE [SIZE]");
  const std::vector<std::string> classes(tuning::arrival_names.begin(), tuning::arrival_names.end());
  const auto add = [&](CLI::Option* option) { option->needs(rules); };
  add(command.add_option("--ranks", options.ranks, "of the communicator (default: as many as cores)")
          ->check(at_least_one())
          ->type_name("N"));
  add(command.add_option("--nodes", options.nodes, "they are on (default: 1)")->check(at_least_one())->type_name("N"));
  add(command.add_flag("--oversubscribed", options.oversubscribed, "there are more ranks than cores"));
  add(command.add_option("--arrivals", options.arrivals, "their pattern: balanced, persistent, ... (default: any)")
          ->check(CLI::IsMember(classes))
          ->type_name("CLASS"));
  add(command.add_option("--site", options.site, "the call site they come from, as the tuning file has it")
          ->type_name("PLACE"));
  add(command.add_option("--mpi", options.mpi, "openmpi or mpich (default: openmpi)")
          ->check(CLI::IsMember({"openmpi", "mpich"}))
          ->type_name("NAME"));
  add(command.add_option("--tuning", options.file, "instead of PAPAYA_TUNING's")->type_name("FILE"));
  return rules;
}

}  // namespace

void add_info(CLI::App& app, int& exit_code) {
  CLI::App* const command =
      app.add_subcommand("info", "list the algorithms, the environment variables, the MPIs; explain choices");
  struct Options {
    bool environment = false;
    std::string collective;
    CLI::Option* algorithms = nullptr;
  };
  auto options = std::make_shared<Options>();
  auto call = std::make_shared<CallOptions>();
  command->add_flag("--env", options->environment, "the environment variables with their values and defaults");
  options->algorithms = command->add_option("--algorithms", options->collective,
                                            "the algorithms; with a COLLECTIVE only the names of its, one a line");
  options->algorithms->expected(0, 1)->type_name("[COLLECTIVE]");
  const CLI::Option* const rules = add_rules(*command, *call);
  command->callback([options, call, rules, &exit_code] {
    exit_code = exit_fine;
    if (rules->count() > 0) {
      exit_code = print_rules(*call);
      return;
    }
    const bool some = options->algorithms->count() > 0;
    if (some && !options->collective.empty()) {
      if (options->collective == "all") return print_algorithms();
      Collective collective{};
      if (print_weak_names(options->collective)) return;
      if (!tuning::collective_of(options->collective, collective))
        throw CLI::ValidationError("--algorithms", "no collective is called " + options->collective);
      print_names(collective);
      return;
    }
    const bool everything = !some && !options->environment;
    if (everything) {
      fmt::print("papaya {}\n\nMPIs\n", PAPAYA_VERSION);
      print_flavours();
      fmt::print("\nAlgorithms\n");
    }
    if (some || everything) print_algorithms();
    if (some == options->environment) fmt::print("\nEnvironment\n");
    if (options->environment || everything) print_environment();
  });
}

}  // namespace papaya
