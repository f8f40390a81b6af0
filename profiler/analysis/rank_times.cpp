#include "profiler/analysis/rank_times.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace papaya::report {

namespace {

double ticks_in(const trace::Totals& totals, Form form) {
  double ticks = 0;
  for (std::size_t c = 0; c < collective_count; ++c)
    for (const trace::Total& total : totals.by_size[c][static_cast<std::size_t>(form)])
      ticks += static_cast<double>(total.ticks);
  return ticks;
}

// Without recording, of the time from MPI_Init to the end of the record.
double unrecorded_ns(const NodeClock& clock, const RankHeader& header, double init_ns, double end_ns) {
  double ns = clock.ns_per_tick * static_cast<double>(header.unrecorded_ticks);
  if (header.unrecorded_since > header.begin_ticks) ns += std::max(0.0, end_ns - clock.ns(header.unrecorded_since));
  return std::clamp(ns, 0.0, std::max(0.0, end_ns - init_ns));
}

}  // namespace

double RankTime::elsewhere_ns() const {
  return std::accumulate(of_kind.begin(), of_kind.end(), starting_ns + finalize_ns);
}

std::vector<RankTime> rank_times(const Run& run, const Clocks& clocks, const RunTimes& times) {
  std::vector<RankTime> all;
  if (run.files.empty()) return all;
  const double begin_ns = *std::min_element(times.init_ns.begin(), times.init_ns.end());
  const double end_ns = *std::max_element(times.end_ns.begin(), times.end_ns.end());
  for (std::size_t i = 0; i < run.files.size(); ++i) {
    const RankFile& file = run.files[i];
    const double ns_per_tick = clocks.of_file(i).ns_per_tick;
    RankTime& time = all.emplace_back();
    time.is_known = file.header.timed_count != 0;
    time.before_ns = times.init_ns[i] - begin_ns;
    time.finalize_ns = end_ns - times.end_ns[i];
    const trace::Totals totals = file.totals.unpack();
    time.collectives_ns = ns_per_tick * ticks_in(totals, Form::blocking);
    for (const trace::WeakRow& row : file.weak.rows) time.collectives_ns += static_cast<double>(row.inside_ns);
    for (const Form form : {Form::nonblocking, Form::persistent, Form::started})
      time.starting_ns += ns_per_tick * ticks_in(totals, form);
    time.of_kind[index_of(MpiKind::neighbourhood)] = ns_per_tick * ticks_in(totals, Form::neighbourhood);
    for (const trace::TimedFunction& row : file.timed)
      time.of_kind[row.kind] += ns_per_tick * static_cast<double>(row.ticks);
    const double in_mpi = time.collectives_ns + time.elsewhere_ns() - time.finalize_ns;
    time.unrecorded_ns = unrecorded_ns(clocks.of_file(i), file.header, times.init_ns[i], times.end_ns[i]);
    time.computing_ns = std::max(0.0, times.end_ns[i] - times.init_ns[i] - in_mpi - time.unrecorded_ns);
  }
  return all;
}

bool was_switched_off(const RankHeader& header) {
  return header.unrecorded_calls > 0 || header.unrecorded_ticks > 0 || header.unrecorded_since != 0;
}

double computing_in_phase_ns(const RankFile& file, std::size_t number) {
  const trace::PhaseTime& time = file.header.phase_times[number];
  return std::max(0.0, static_cast<double>(time.ticks) - static_cast<double>(time.mpi_ticks)) * file.header.ns_per_tick;
}

Efficiency efficiency_of(std::span<const Useful> ranks, double run_ns) {
  double sum_ns = 0;
  double most_ns = 0;
  std::map<std::int32_t, double> of_node;
  for (const Useful& rank : ranks) {
    sum_ns += rank.ns;
    most_ns = std::max(most_ns, rank.ns);
    of_node[rank.node] += rank.ns;
  }
  if (most_ns <= 0 || run_ns <= 0) return {};
  double most_of_node_ns = 0;
  for (const auto& [node, ns] : of_node) most_of_node_ns = std::max(most_of_node_ns, ns);
  const auto count = static_cast<double>(ranks.size());
  const auto nodes = static_cast<double>(of_node.size());
  return {.is_known = true,
          .of_ns = run_ns,
          .parallel = sum_ns / count / run_ns,
          .load_balance = sum_ns / count / most_ns,
          .balance_within_nodes = most_of_node_ns * nodes / (most_ns * count),
          .balance_between_nodes = sum_ns / (most_of_node_ns * nodes),
          .communication = most_ns / run_ns};
}

Efficiency efficiency_of(const Run& run, const std::vector<RankTime>& ranks, std::span<const std::size_t> files,
                         double run_ns) {
  std::vector<Useful> useful;
  double left_out_ns = run_ns;  // for so long none of them was recorded
  for (const std::size_t file : files) {
    if (!ranks[file].is_known) return {};
    useful.push_back({ranks[file].computing_ns, run.files[file].header.node});
    left_out_ns = std::min(left_out_ns, ranks[file].unrecorded_ns);
  }
  return efficiency_of(useful, run_ns - left_out_ns);
}

void add_transfer(Efficiency& efficiency, double run_ns, double path_ns) {
  if (!efficiency.is_known || !(path_ns > 0)) return;
  efficiency.knows_transfer = true;
  efficiency.transfer = std::clamp(path_ns / run_ns, efficiency.communication, 1.0);
  efficiency.serialisation = efficiency.communication / efficiency.transfer;
}

std::vector<FunctionFigures> timed_functions(const Run& run, const Clocks& clocks) {
  std::map<std::string, FunctionFigures> by_name;
  for (std::size_t i = 0; i < run.files.size(); ++i) {
    for (const trace::TimedFunction& row : run.files[i].timed) {
      FunctionFigures& figures = by_name[clean_text(row.name)];
      const double ns = static_cast<double>(row.ticks) * clocks.of_file(i).ns_per_tick;
      figures.kind = static_cast<MpiKind>(row.kind);
      figures.calls += row.calls;
      figures.ns += ns;
      if (ns < figures.most_ns) continue;
      figures.most_ns = ns;
      figures.most_rank = run.files[i].header.rank;
    }
  }
  std::vector<FunctionFigures> functions;
  for (auto& [name, figures] : by_name) {
    figures.name = name;
    functions.push_back(std::move(figures));
  }
  std::stable_sort(functions.begin(), functions.end(), [](const auto& a, const auto& b) { return a.ns > b.ns; });
  return functions;
}

}  // namespace papaya::report
