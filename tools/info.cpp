// papaya info: what this papaya can do, read from the registry and the tables.
#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <string>

#include "algorithms/algorithm.hpp"
#include "algorithms/weak/weak.hpp"
#include "base/settings.hpp"
#include "tools/command.hpp"
#include "tuning/selection.hpp"

namespace papaya {

namespace {

void print_environment() {
  for (const VariableRow& row : variable_rows())
    fmt::print("{:<22} {}\n{:<22}   values: {}, default: {}\n", row.name, row.help, "", row.values,
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
                 descriptor->serves_alltoallv ? ", MPI_Alltoallv too" : "",
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
    for (const char* flavour : {"openmpi", "mpich"})
      if (const auto path = searched / fmt::format("libpapaya-{}.so", flavour); std::filesystem::exists(path, error))
        fmt::print("  {} ({})\n", flavour, path.string());
}

}  // namespace

void add_info(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand("info", "list the algorithms, the environment variables, the MPIs");
  struct Options {
    bool environment = false;
    std::string collective;
    CLI::Option* algorithms = nullptr;
  };
  auto options = std::make_shared<Options>();
  command->add_flag("--env", options->environment, "the environment variables with their values and defaults");
  options->algorithms = command->add_option("--algorithms", options->collective,
                                            "the algorithms; with a COLLECTIVE only the names of its, one a line");
  options->algorithms->expected(0, 1)->type_name("[COLLECTIVE]");
  command->callback([options, &exit_code] {
    exit_code = exit_fine;
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
