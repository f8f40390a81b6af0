// One algorithm, or the simulated MPI's own, on a simulated machine: allreduces under arrival patterns, a
// line of JSON for each size and pattern. tools/simulate starts it under smpirun.
//
//   --algorithm NAME[:parameter=value,...]   one of papaya's that works across nodes, hierarchical/NAME... to
//                                            run it between nodes only, leaders/NAME... by several ranks of each
//                                            node, or `native`
//   --chunk-bytes N                          of hierarchical/... and leaders/...; 0: as the library
//   --type double|integer   integers have the same bits in whatever order they are added
//   --bytes N...  --pattern NAME...  --mif N...  --calls N  --seed N
//   --message-us  --node-message-us  --node-latency-us  --copy-gbytes  --reduce-gbytes   what software and
//   memory cost
//
// Where all ranks' messages together are small, they hold numbers and every result is checked. Else all ranks
// share one buffer, and only time passes.
#include <fmt/format.h>
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "algorithms/kernels/reduce.hpp"
#include "tools/bench/patterns.hpp"
#include "tools/bench/statistics.hpp"
#include "tools/simulation/blocks.hpp"
#include "tools/simulation/hierarchical.hpp"
#include "tools/simulation/machine.hpp"
#include "tools/simulation/numbers.hpp"
#include "tools/simulation/simulated_notified.hpp"
#include "tuning/selection.hpp"

namespace papaya::simulation {

namespace {

namespace s4u = simgrid::s4u;

constexpr std::size_t most_real_bytes = std::size_t{64} << 20;  // of all ranks' messages
constexpr double between_calls_s = 1e-3;  // longer than ranks take to leave a barrier one after another

struct Options {
  std::string algorithm = "native";
  std::string type = "double";
  std::string collective = "allreduce";
  std::vector<std::size_t> bytes = {8};
  std::vector<std::string> patterns = {"none"};
  std::vector<double> mifs = {0};
  int calls = 3;
  std::uint64_t seed = 1;
  std::size_t chunk_bytes = 0;
  double message_us = 0.3;
  double node_message_us = 0.05;
  double copy_gbytes = 10;
  double reduce_gbytes = 5;
  double node_latency_us = 0.3;

  Costs costs() const {
    return {message_us * 1e-6, node_message_us * 1e-6, 1e-9 / copy_gbytes, 1e-9 / reduce_gbytes,
            node_latency_us * 1e-6};
  }
};

constexpr std::string_view hierarchical = "hierarchical/";
constexpr std::string_view leaders = "leaders/";
bool has_many_leaders(const Options& options) {
  return options.algorithm.starts_with(leaders);
}
bool is_hierarchical(const Options& options) {
  return options.algorithm.starts_with(hierarchical) || has_many_leaders(options);
}

// What is wrong with the command line, or nothing.
std::string parse(int argc, char** argv, const Nodes& nodes, int rank, Options& options, tuning::Rule& rule) {
  CLI::App app("simulates a collective");
  app.add_option("--algorithm", options.algorithm);
  app.add_option("--collective", options.collective)->check(CLI::IsMember({"allreduce", "allgather", "alltoall"}));
  app.add_option("--type", options.type)->check(CLI::IsMember({"double", "integer"}));
  app.add_option("--bytes", options.bytes);
  app.add_option("--pattern", options.patterns);
  app.add_option("--mif", options.mifs)->check(CLI::NonNegativeNumber);
  app.add_option("--calls", options.calls)->check(CLI::PositiveNumber);
  app.add_option("--seed", options.seed);
  app.add_option("--message-us", options.message_us)->check(CLI::NonNegativeNumber);
  app.add_option("--node-message-us", options.node_message_us)->check(CLI::NonNegativeNumber);
  app.add_option("--chunk-bytes", options.chunk_bytes)->check(CLI::NonNegativeNumber);
  app.add_option("--copy-gbytes", options.copy_gbytes)->check(CLI::PositiveNumber);
  app.add_option("--reduce-gbytes", options.reduce_gbytes)->check(CLI::PositiveNumber);
  app.add_option("--node-latency-us", options.node_latency_us)->check(CLI::NonNegativeNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  for (const std::size_t bytes : options.bytes)
    if (bytes == 0 || bytes % sizeof(double) != 0) return fmt::format("--bytes {} is no multiple of 8", bytes);
  for (const std::string& word : options.patterns)
    if (word == "replay" || std::none_of(bench::pattern_rows().begin(), bench::pattern_rows().end(),
                                         [&](const bench::PatternRow& row) { return row.name == word; }))
      return fmt::format("'{}' is no pattern; papaya bench --help lists them", word);
  if (options.algorithm == "native") return "";
  tuning::Parsed parsed;
  std::string problem;
  const std::string_view name =
      std::string_view(options.algorithm).substr(is_hierarchical(options) ? options.algorithm.find('/') + 1 : 0);
  Collective collective{};
  tuning::collective_of(options.collective, collective);
  if (!tuning::parse(collective, Form::blocking, name, parsed, problem)) return problem;
  if (rank == 0 && !parsed.old_names.empty()) fmt::print(stderr, "papaya: {}\n", tuning::text_of(parsed.old_names));
  const std::vector<tuning::Rule>& rules = parsed.rules;
  if (parsed.automatic || rules.size() != 1 || rules[0].algorithm == nullptr || rules[0].algorithm->segment == nullptr)
    return "--algorithm takes one that works across nodes; papaya info --algorithms allreduce lists them";
  if (collective == Collective::allreduce && !rules[0].algorithm->split_phase &&
      (is_hierarchical(options) || static_cast<std::size_t>(nodes.count()) < nodes.of_rank.size()))
    return fmt::format("{} runs with one rank a node", rules[0].algorithm->name);
  rule = rules[0];
  for (const std::size_t bytes : options.bytes)
    if (bytes > rule.algorithm->max_bytes && !is_hierarchical(options))
      return fmt::format("{} takes messages up to {} bytes", rule.algorithm->name, rule.algorithm->max_bytes);
  return "";
}

bench::Pattern pattern_of(const std::string& word) {
  return std::find_if(bench::pattern_rows().begin(), bench::pattern_rows().end(),
                      [&](const bench::PatternRow& row) { return row.name == word; })
      ->pattern;
}

// What the ranks share. They are in one process, and none of its variables is anybody's own.
struct Shared {
  std::vector<double> starts_s;  // by call
  std::vector<double> arrivals_us, exits_us;
  std::vector<std::byte> send, receive;  // where only time passes
  int wrong = 0;
};
Shared shared;

// The reduction, with what it costs the processor beyond what a received byte costs already.
struct Combination {
  Reduction reduction;
  Reduction::Combine kernel;
  Processor* processor;
  double s_per_byte;
  bool keeps_data;

  static void combine(const Reduction& reduction, const void* left, const void* right, void* out, std::size_t count) {
    const auto& self = *static_cast<const Combination*>(reduction.context);
    if (self.keeps_data) self.kernel(reduction, left, right, out, count);
    self.processor->work(static_cast<double>(count * reduction.element_bytes) * self.s_per_byte);
  }
};

// The same for the simulated MPI.
struct Native {
  static inline double s_per_byte = 0;
  static inline bool keeps_data = true;
  static inline bool integers = false;
  static void combine(void* in, void* inout, int* count, MPI_Datatype*) {
    if (keeps_data)
      kernels::find(integers ? kernels::ElementType::i64 : kernels::ElementType::f64, kernels::Operation::sum)(
          Reduction{.element_bytes = 8}, in, inout, inout, static_cast<std::size_t>(*count));
    s4u::this_actor::sleep_for(static_cast<double>(*count) * 8 * s_per_byte);
  }
};

class Simulation {
 public:
  Simulation(const Options& options, const tuning::Rule& rule, const Nodes& nodes)
      : options_(options), rule_(rule), nodes_(nodes) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    Processor::configure(policy_);
  }

  void run() {
    Collective collective{};
    tuning::collective_of(options_.collective, collective);
    for (const std::size_t bytes : options_.bytes) {
      if (collective == Collective::allreduce) {
        run_size(bytes);
        continue;
      }
      const double us = rule_.algorithm == nullptr
                            ? native_blocks_us(collective, bytes)
                            : blocks_us(rule_, nodes_, bytes, options_.costs(), processor_, policy_);
      if (rank_ == 0) print_row(bytes, "none", 0, 0, us, us, false);
    }
  }

 private:
  struct Buffers {
    std::byte* send;
    std::byte* receive;
  };

  void run_size(std::size_t bytes) {
    const bool integers = options_.type == "integer";
    const std::size_t count = bytes / 8;
    const auto ranks = static_cast<std::size_t>(ranks_);
    const bool keeps_data = bytes * ranks <= most_real_bytes;
    static std::unique_ptr<const Numbers> numbers;
    if (rank_ == 0) {
      numbers = keeps_data ? std::make_unique<Numbers>(integers, count, ranks_) : nullptr;
      shared.send.assign(keeps_data ? 0 : bytes, std::byte{});
      shared.receive.assign(keeps_data ? 0 : bytes, std::byte{});
      shared.arrivals_us.assign(ranks, 0);
      shared.exits_us.assign(ranks, 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    std::vector<std::byte> send(keeps_data ? bytes : 0);
    std::vector<std::byte> receive(keeps_data ? bytes : 0);
    const Buffers buffers =
        keeps_data ? Buffers{send.data(), receive.data()} : Buffers{shared.send.data(), shared.receive.data()};
    const Costs costs = options_.costs();

    std::unique_ptr<SimulatedNotified> wire;
    std::unique_ptr<Prepared> prepared;
    std::function<void()> call;
    const kernels::ElementType type = integers ? kernels::ElementType::i64 : kernels::ElementType::f64;
    Combination combination{{.element_bytes = 8, .by_table = true, .exact = integers, .combine = Combination::combine},
                            kernels::find(type, kernels::Operation::sum),
                            &processor_,
                            std::max(0.0, costs.reduce_s_per_byte - costs.copy_s_per_byte),
                            keeps_data};
    combination.reduction.context = &combination;
    MPI_Op op = MPI_OP_NULL;
    if (rule_.algorithm == nullptr) {
      Native::s_per_byte = costs.reduce_s_per_byte;
      Native::keeps_data = keeps_data;
      Native::integers = integers;
      MPI_Op_create(Native::combine, 1, &op);
      call = [&, buffers, count] {
        MPI_Allreduce(buffers.send, buffers.receive, static_cast<int>(count), MPI_DOUBLE, op, MPI_COMM_WORLD);
      };
    } else {
      if (!is_hierarchical(options_))
        wire = SimulatedNotified::create(MPI_COMM_WORLD,
                                         rule_.algorithm->segment({ranks_, nodes_of_team()}, bytes, rule_.values),
                                         costs, processor_, keeps_data);
      Team team{};
      team.rank = rank_;
      team.size = ranks_;
      team.policy = &policy_;
      team.wire = wire.get();
      team.nodes = nodes_of_team();
      prepared = is_hierarchical(options_) ? make_hierarchical(rule_, has_many_leaders(options_), options_.chunk_bytes,
                                                               bytes, costs, processor_, policy_, keeps_data)
                                           : rule_.algorithm->prepare(team, bytes, rule_.values);
      call = [&, buffers, bytes, count] {
        Operands operands{};
        operands.send = buffers.send;
        operands.receive = buffers.receive;
        operands.count = count;
        operands.bytes = bytes;
        operands.root = -1;
        operands.reduction = &combination.reduction;
        prepared->run(operands, site_);
        processor_.catch_up();
      };
    }

    // What SMPI makes at the first call (communicators of nodes and leaders) is none of the others' business.
    if (numbers != nullptr) numbers->fill(buffers.send, rank_, 0);
    if (rule_.algorithm == nullptr) call();
    for (const std::string& pattern : options_.patterns)
      for (const double mif : options_.mifs)
        if ((mif > 0) == (pattern != "none")) run_pattern(bytes, pattern, mif, buffers, numbers.get(), call);

    prepared.reset();
    MPI_Barrier(MPI_COMM_WORLD);
    wire.reset();
    if (op != MPI_OP_NULL) MPI_Op_free(&op);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank_ == 0)
      if (const std::uint64_t late = SimulatedNotified::take_late_writes(); late != 0) {
        fmt::print(stderr, "papaya-simulation: {} writes came after their rank had ended\n", late);
        ++shared.wrong;
      }
  }

  // Those without a split phase ask for it.
  const Nodes* nodes_of_team() const noexcept { return rule_.algorithm->split_phase ? nullptr : &nodes_; }

  // The library's that is simulated, or modelled.
  const Descriptor& modelled() const {
    const std::string_view name = has_many_leaders(options_) ? "hierarchical_leaders"
                                  : is_hierarchical(options_) && rule_.algorithm->name == "rabenseifner"
                                      ? "hierarchical_rabenseifner"
                                      : rule_.algorithm->name;
    return *find_algorithm(rule_.algorithm->collective, name);
  }

  // Between the nodes that are farthest apart.
  double longest_message_s(std::size_t bytes) const {
    const std::vector<s4u::Host*> hosts = s4u::Engine::get_instance()->get_all_hosts();
    return message_s(*hosts.front(), *hosts.back(), bytes, options_.costs());
  }

  void run_pattern(std::size_t bytes, const std::string& word, double mif, const Buffers& buffers,
                   const Numbers* numbers, const std::function<void()>& call) {
    const bench::Pattern pattern = pattern_of(word);
    const double skew_s = mif * longest_message_s(bytes);
    std::vector<double> excess_us;
    for (int n = 0; n < options_.calls; ++n) {
      const auto number = static_cast<std::uint64_t>(n);
      if (numbers != nullptr) {
        numbers->fill(buffers.send, rank_, number);
        std::memset(buffers.receive, 0, bytes);
      }
      MPI_Barrier(MPI_COMM_WORLD);
      // The first to come says when it begins.
      if (shared.starts_s.size() <= begun_) shared.starts_s.push_back(s4u::Engine::get_clock() + between_calls_s);
      const double start_s = shared.starts_s[begun_++];
      s4u::this_actor::sleep_until(start_s + skew_s * bench::lateness(pattern, rank_, ranks_, number, options_.seed));
      const auto me = static_cast<std::size_t>(rank_);
      shared.arrivals_us[me] = (s4u::Engine::get_clock() - start_s) * 1e6;
      call();
      shared.exits_us[me] = (s4u::Engine::get_clock() - start_s) * 1e6;
      if (numbers != nullptr && !numbers->holds_sum(buffers.receive, number)) ++shared.wrong;
      MPI_Barrier(MPI_COMM_WORLD);
      if (rank_ == 0)
        excess_us.push_back(bench::times_of(Collective::allreduce, shared.arrivals_us, shared.exits_us, -1).excess);
    }
    if (rank_ != 0) return;
    const bench::Summary summary = bench::summarize(excess_us);
    print_row(bytes, word, mif, skew_s, summary.p50, summary.max, numbers != nullptr);
  }

  void print_row(std::size_t bytes, const std::string& word, double mif, double skew_s, double p50, double max,
                 bool checked) const {
    fmt::print(
        "{{\"algorithm\": \"{}\", \"type\": \"{}\", \"ranks\": {}, \"bytes\": {}, \"pattern\": \"{}\", "
        "\"mif\": {}, \"skew_us\": {:.3f}, \"calls\": {}, \"model_us\": {:.3f}, "
        "\"excess_us\": {{\"p50\": {:.3f}, \"max\": {:.3f}}}, \"checked\": {}, \"wrong\": {}}}\n",
        options_.algorithm, options_.type, ranks_, bytes, word, mif, skew_s * 1e6, options_.calls,
        rule_.algorithm == nullptr ? 0 : model_us(modelled(), nodes_, bytes, options_.costs()), p50, max, checked,
        shared.wrong);
    std::fflush(stdout);
  }

  const Options& options_;
  const tuning::Rule& rule_;
  const Nodes& nodes_;
  int rank_ = 0;
  int ranks_ = 1;
  std::size_t begun_ = 0;
  Processor processor_;
  wait::Policy policy_;
  wait::Site site_;
};

}  // namespace

}  // namespace papaya::simulation

// smpirun looks it up.
__attribute__((visibility("default"))) int main(int argc, char** argv) {
  using namespace papaya;
  MPI_Init(&argc, &argv);
  simulation::Options options;
  tuning::Rule rule;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  // Ranks whose variables are their own cannot hand addresses around.
  const void* first = &simulation::shared;
  MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, MPI_COMM_WORLD);
  const Nodes nodes = first == &simulation::shared ? simulation::nodes_of_ranks() : Nodes{};
  const std::string problem = first == &simulation::shared ? simulation::parse(argc, argv, nodes, rank, options, rule)
                                                           : "start it with smpirun -no-privatize; tools/simulate does";
  if (!problem.empty()) {
    if (rank == 0) fmt::print(stderr, "papaya-simulation: {}\n", problem);
    MPI_Finalize();
    return 2;
  }
  simulation::Simulation(options, rule, nodes).run();
  MPI_Finalize();
  return simulation::shared.wrong == 0 ? 0 : 1;
}
