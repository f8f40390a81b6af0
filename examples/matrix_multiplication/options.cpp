#include "options.hpp"

#include <CLI/CLI.hpp>
#include <map>

namespace matrix_multiplication {

namespace {

const std::map<std::string, Placement> placements{
    {"cyclic", Placement::cyclic}, {"rows", Placement::rows}, {"random", Placement::random}};
const std::map<std::string, Assignment> assignments{{"least", Assignment::least},
                                                    {"balanced", Assignment::balanced},
                                                    {"grid", Assignment::grid},
                                                    {"owner", Assignment::owner}};
const std::map<std::string, Order> orders{{"panels", Order::panels}, {"chains", Order::chains}};
const std::map<std::string, Variant> variants{
    {"both", Variant::both}, {"notified", Variant::notified}, {"pdgemm", Variant::pdgemm}};

template <class Value>
const char* name_in(const std::map<std::string, Value>& names, Value value) noexcept {
  for (const auto& [name, one] : names)
    if (one == value) return name.c_str();
  return "";
}

template <class Value>
void add_choice(CLI::App& app, const std::string& name, Value& value, const std::map<std::string, Value>& names,
                const std::string& help) {
  app.add_option(name, value, help)
      ->transform(CLI::CheckedTransformer(names, CLI::ignore_case))
      ->default_str(name_in(names, value));
}

void add_matrices(CLI::App& app, Options& options) {
  const CLI::Range dimension(1, 1 << 24);
  app.add_option("-m", options.m, "Rows of A and C (default: those of --a, else 2048)")->check(dimension);
  app.add_option("-n", options.n, "Columns of B and C (default: those of --b, else 2048)")->check(dimension);
  app.add_option("-k", options.k, "Columns of A and rows of B (default: those of the files, else 2048)")
      ->check(dimension);
  app.add_option("--a", options.a, "File of A in Matrix Market array format; without it A is generated");
  app.add_option("--b", options.b, "File of B, the same");
  app.add_option("--out", options.out, "File that C goes to");
  app.add_option("--block", options.block, "Rows and columns of a block")
      ->capture_default_str()
      ->check(CLI::Range(1, 16384));
  add_choice(app, "--placement", options.placement, placements,
             "cyclic (two-dimensional block-cyclic), rows (blocks in row-major order) or random: who has which block");
  app.add_option("--seed", options.seed, "Of elements that are generated, and of the random placement")
      ->capture_default_str();
}

void add_variants(CLI::App& app, Options& options) {
  add_choice(app, "--variant", options.variant, variants, "both, notified or pdgemm");
  app.add_option("--rounds", options.rounds, "Multiplications of each variant, in turn; the medians are reported")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  add_choice(
      app, "--assign", options.assignment, assignments,
      "notified: who computes blocks of C: owner (who has it), balanced (who has it, but as much for each rank), "
      "grid (each rank a rectangle, as much for each) or least (of the last two what moves fewer bytes)");
  add_choice(app, "--order", options.order, orders,
             "notified: panels (of one block of K after the other) or chains (of one block of C after the other)");
  app.add_option("--buffers", options.buffers,
                 "notified: blocks of A, and of B, that a rank has room for (0: as many as two panels need, or two)")
      ->capture_default_str()
      ->check(CLI::Range(0, 4096));
  app.add_option("--grid", options.grid, "PDGEMM's process grid, as 2x2, and that of the cyclic placement");
  app.add_option("--pdgemm-block", options.pdgemm_block, "Rows and columns of PDGEMM's blocks")
      ->capture_default_str()
      ->check(CLI::Range(1, 16384));
  app.add_option("--panel", options.panel, "PDGEMM: elements of K that it handles at once; PBLAS's own value is 32")
      ->capture_default_str()
      ->check(CLI::Range(1, 16384));
  app.add_option("--json", options.json, "File for the results");
  app.add_flag("--plant-error", options.plants_error,
               "Leave out one product of blocks, so that the check fails (not with --variant pdgemm)");
}

}  // namespace

const char* name_of(Placement placement) noexcept {
  return name_in(placements, placement);
}

const char* name_of(Assignment assignment) noexcept {
  return name_in(assignments, assignment);
}

const char* name_of(Order order) noexcept {
  return name_in(orders, order);
}

std::optional<Options> parse(int argc, char** argv, int rank, int& code) {
  Options options;
  CLI::App app{
      "Multiplies matrices whose blocks lie on all ranks, by notified one-sided communication and by ScaLAPACK's "
      "PDGEMM, "
      "and checks the product."};
  add_matrices(app, options);
  add_variants(app, options);
  try {
    app.parse(argc, argv);
    if (options.plants_error && options.variant == Variant::pdgemm)
      throw CLI::ValidationError("--plant-error", "there is no error to plant in PDGEMM");
  } catch (const CLI::ParseError& error) {
    code = rank == 0 ? app.exit(error) : error.get_exit_code();
    if (code != 0) code = 2;
    return std::nullopt;
  }
  return options;
}

}  // namespace matrix_multiplication
