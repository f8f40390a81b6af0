#include "tools/bench/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/topology.hpp"
#include "tools/bench/machine.hpp"
#include "tools/bench/output.hpp"
#include "tools/bench/quiet.hpp"
#include "tools/bench/weak_measure.hpp"
#include "tools/bench/weak_output.hpp"

namespace papaya::bench {

std::string Session::mpi_name() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  std::string name(version, std::strcspn(version, "\n,"));
  std::replace(name.begin(), name.end(), '\t', ' ');
  if (const std::size_t word = name.find(" Version:"); word != name.npos) name.erase(word, 9);
  while (name.find("  ") != name.npos) name.erase(name.find("  "), 1);
  return name;
}

Session::Session(MPI_Comm world) : world_(world), clock_(world) {
  PMPI_Comm_rank(world, &rank_);
  PMPI_Comm_size(world, &ranks_);
  topology::CoreSet allowed = topology::allowed().cores;
  quiet::unite(&allowed, static_cast<int>(sizeof allowed), clock_.node());
  cores_ = std::max(1, topology::count(allowed));
  int node_rank = 0, node_ranks = 1;
  PMPI_Comm_rank(clock_.node(), &node_rank);
  PMPI_Comm_size(clock_.node(), &node_ranks);
  core_each_ = quiet::maximum(node_ranks > cores_ ? 1 : 0, world) == 0;
  all_cores_ = static_cast<int>(quiet::sum(node_rank == 0 ? cores_ : 0, world));
}

std::string Session::agreed(std::string problem) const {
  return quiet::share(std::move(problem), world_);
}

std::vector<Row> Session::measure_weak(Job& job, const Show& show) {
  std::vector<Row> all;
  const std::vector<std::size_t>& sizes = job.options.sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto step = [&](double share, const std::string& algorithm) {
      show.progress((static_cast<double>(i) + share) / static_cast<double>(sizes.size()),
                    fmt::format("{} {} {}", name_of(*job.options.weak), short_bytes(sizes[i]), algorithm));
    };
    std::vector<Row> rows = measure_weak_size(job, sizes[i], show.warn, step);
    show.pause();
    if (i == 0) show.print(weak_table_head(rows));
    for (Row& row : rows) {
      show.print(weak_table_row(row));
      all.push_back(std::move(row));
    }
  }
  return all;
}

void Session::measure_operations(Job& job, const Show& show, const std::function<bool()>& goes_on, Result& result) {
  const Options& options = job.options;
  std::size_t steps = 0, done = 0;
  for (const auto& [collective, form] : options.operations)
    steps += collective == Collective::barrier ? 1 : options.sizes.size();
  const std::size_t largest = *std::max_element(options.sizes.begin(), options.sizes.end());
  const bool together = options.pattern == Pattern::none && options.mode != Mode::imbalanced;
  const auto is_over = [&] {
    return goes_on && done > 0 && quiet::share(rank_ == 0 && !goes_on() ? 1 : 0, world_) > 0;
  };
  bool is_cut = false;
  for (const Operation& operation : options.operations) {
    if (is_cut) break;
    const bool barrier = operation.collective == Collective::barrier;
    Calls calls(operation, barrier ? 0 : largest, options.root, world_);
    show.print(table_head(result, operation));
    for (const std::size_t bytes : barrier ? std::vector<std::size_t>{0} : options.sizes) {
      is_cut = is_over();
      if (is_cut) break;
      const auto step = [&](double share, const std::string& algorithm) {
        show.progress((static_cast<double>(done) + share) / static_cast<double>(steps),
                      fmt::format("{} {} {}", name_of(operation), short_bytes(bytes), algorithm));
      };
      std::vector<Row> rows = measure_size(job, calls, operation, bytes, show.warn, step);
      measure_lines_again(clock_, world_, *machine_);
      show.pause();
      for (Row& row : rows) {
        if (job.nodes == 1 && job.ranks > 1 && machine_->is_measured())
          if (const double limit = limit_us(row.collective, bytes, job.ranks, together, *machine_); limit > 0)
            row.limit_us = limit;
        show.print(table_row(row, 1));
        result.rows.push_back(std::move(row));
      }
      ++done;
    }
  }
}

Result Session::measure(const Options& options, const Replay& replay, const Show& show,
                        const std::function<bool()>& goes_on) {
  Job job{options, clock_, algorithms_, world_, rank_, ranks_, clock_.nodes(), core_each_, replay, 0};
  if (options.measures_natives && natives_ == nullptr) natives_ = std::make_unique<NativeVariants>(world_);
  if (options.measures_natives) job.natives = natives_.get();
  if (core_each_) CommonClock::sleep_exactly();
  if (options.mode == Mode::imbalanced) job.units_per_us = measure_units_per_us(clock_);

  const std::size_t largest = *std::max_element(options.sizes.begin(), options.sizes.end());
  if (!machine_ || largest > measured_bytes_) {
    machine_ = measure_machine(clock_, world_, cores_, largest);
    measured_bytes_ = largest;
  }
  Result result;
  result.ranks = ranks_;
  result.nodes = job.nodes;
  result.cores = all_cores_;
  result.mpi = mpi_name();
  result.mode = std::string(name_of(options.mode));
  result.pattern = options.mode == Mode::imbalanced ? "random" : std::string(name_of(options.pattern));
  if (options.mif >= 0) result.mif = options.mif;
  if (options.weak) result.compute_us = options.compute_us;
  result.seed = options.seed;
  result.rounds = options.rounds;
  result.root = options.root;
  result.precision = options.precision;
  result.margin = options.margin;
  result.samples = static_cast<std::size_t>(options.samples);
  result.machine = *machine_;
  result.clock_error_us = clock_.error_us();
  result.skew_us = options.pattern == Pattern::replay && options.skew_us < 0 ? job.replay.largest_us()
                                                                             : std::max(0.0, options.skew_us);
  show.print(header_text(result));
  if (!algorithms_.is_there() && !options.weak)
    show.warn("the preloaded library has no papaya_select to switch algorithms with; measuring native MPI only.");

  const Others others(clock_);
  if (options.weak) result.rows = measure_weak(job, show);
  measure_operations(job, show, goes_on, result);
  for (const Row& row : result.rows) result.skew_us = std::max(result.skew_us, row.skew_us);
  result.machine = *machine_;
  result.clock_error_us = clock_.error_us();
  result.others_share = quiet::maximum(others.share(), world_);
  return result;
}

}  // namespace papaya::bench
