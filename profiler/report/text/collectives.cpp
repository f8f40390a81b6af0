// Collectives, their sizes, imbalance, time inside and algorithms; and communicators.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "profiler/read/units.hpp"
#include "profiler/report/text/layout.hpp"
#include "profiler/report/text/sections.hpp"

namespace papaya::report {
namespace {

constexpr std::size_t most_communicators_listed = 10;
constexpr std::size_t widest_name = 56;

constexpr const char* size_names[size_class_count] = {"up to 1 KiB", "up to 1 MiB", "larger"};

// The start of a persistent collective goes without MPI_: no name is longer than MPI_Reduce_scatter_block_init then.
std::string row_name(const std::string& name) {
  return name.starts_with("MPI_Start(") ? name.substr(4) : name;
}

std::string factor_text(double factor) {
  if (factor >= 99.5 && factor < 1e15) return count_text(static_cast<std::uint64_t>(std::round(factor))) + "x";
  if (factor >= 99.5) return fmt::format("{:.3g}x", factor);
  return fmt::format("{:.{}f}x", factor, factor < 9.995 ? 2 : 1);
}

std::string imbalance_table(const Analysis& analysis, const std::string& title, Imbalance Imbalances::*which) {
  // Waiting is known over all ranks, and for all sizes together.
  const bool has_waiting = which == &Imbalances::cluster;
  std::vector<std::string> names = {"call", "size", "calls", "worst-case", "factor", "average-case", "factor"};
  if (has_waiting) names.emplace_back("waiting");
  Table table(title, 2, std::move(names));
  const auto row = [&](const std::string& name, const char* size, const Imbalance& imbalance, std::string waiting) {
    std::vector<std::string> cells = {name,
                                      size,
                                      count_text(imbalance.calls),
                                      time_text(imbalance.worst_ns),
                                      factor_text(imbalance.worst_factor),
                                      time_text(imbalance.average_ns),
                                      factor_text(imbalance.average_factor)};
    if (has_waiting) cells.push_back(std::move(waiting));
    table.add(std::move(cells));
  };
  for (const CollectiveFigures& figures : analysis.collectives) {
    const Imbalance& overall = figures.imbalance.*which;
    if (overall.calls == 0) continue;
    row(figures.name, "all", overall, time_text(figures.waiting_ns));
    for (std::size_t s = 0; s < size_class_count; ++s) {
      const Imbalance& own = figures.by_size[s].imbalance.*which;
      if (own.calls > 0 && own.calls < overall.calls) row("", size_names[s], own, "");
    }
  }
  return table.empty() ? std::string() : table.text();
}

}  // namespace

std::string collectives_text(const Analysis& analysis) {
  double total_ns = 0;
  for (const CollectiveFigures& figures : analysis.collectives) total_ns += figures.ns;
  Table table("Collectives (summed over ranks, exact)", 1,
              {"call", "calls", "bytes", "per call", "time", "per call", "share of time "});
  for (const CollectiveFigures& figures : analysis.collectives) {
    const auto calls = static_cast<double>(figures.calls);
    table.add({row_name(figures.name), count_text(figures.calls), bytes_text(static_cast<double>(figures.bytes)),
               bytes_text(static_cast<double>(figures.bytes) / calls), time_text(figures.ns),
               time_text(figures.ns / calls), share_bar(share_of(figures.ns, total_ns))});
  }
  return table.empty() ? std::string() : table.text();
}

std::string sizes_text(const Analysis& analysis) {
  Table table("By message size", 2, {"call", "size", "calls", "share of calls", "time", "share of time "});
  for (const CollectiveFigures& figures : analysis.collectives) {
    std::string name = row_name(figures.name);
    for (std::size_t s = 0; s < size_class_count; ++s) {
      const SizeFigures& size = figures.by_size[s];
      if (size.calls == 0) continue;
      table.add({std::exchange(name, {}), size_names[s], count_text(size.calls),
                 share_bar(share_of(static_cast<double>(size.calls), static_cast<double>(figures.calls))),
                 time_text(size.ns), share_bar(share_of(size.ns, figures.ns))});
    }
  }
  return table.empty() ? std::string() : table.text();
}

std::string imbalance_text(const Analysis& analysis) {
  std::string page = imbalance_table(
      analysis,
      fmt::format(
          "Arrival imbalance{} (average over calls; worst-case: the longest wait, from the first to the last arrival "
          "where all wait for all; average-case: mean distance of the waits from their mean; factor: divided by alpha, "
          "the time to send one such message; waiting: summed over ranks{}{})",
          analysis.nodes > 1 ? " over all ranks" : "", analysis.alpha_nominal ? ", nominal here" : "",
          between_nodes_text(analysis)),
      &Imbalances::cluster);
  if (analysis.nodes > 1) {
    page += imbalance_table(analysis, "Arrival imbalance within nodes (average over nodes, then over calls)",
                            &Imbalances::node);
  }
  return page;
}

std::string inside_text(const Analysis& analysis) {
  Table table(
      fmt::format("Time inside a call (waiting: until all that the rank needs had arrived, the price of late ranks; "
                  "excess, with percentiles: the rest, the price of the algorithm; all waiting: summed over ranks{})",
                  between_nodes_text(analysis)),
      1, {"call", "inside", "= waiting", "+ excess", "p50", "p99", "max", "all waiting"});
  for (const CollectiveFigures& figures : analysis.collectives) {
    if (figures.inside.samples == 0) continue;
    table.add({figures.name, time_text(figures.inside.mean_ns),
               time_text(figures.inside.mean_ns - figures.excess.mean_ns), time_text(figures.excess.mean_ns),
               time_text(figures.excess.p50_ns), time_text(figures.excess.p99_ns), time_text(figures.excess.max_ns),
               time_text(figures.waiting_ns)});
  }
  return table.empty() ? std::string() : table.text();
}

std::string algorithms_text(const Analysis& analysis) {
  Table table("Algorithms (calls summed over ranks)", 2, {"call", "algorithm", "calls", "why native"}, true);
  std::string previous;
  for (const AlgorithmFigures& row : analysis.algorithms) {
    table.add({row.collective == previous ? "" : row.collective, row.algorithm, count_text(row.calls), row.reason});
    previous = row.collective;
  }
  return table.empty() ? std::string() : table.text();
}

std::string communicators_text(const Analysis& analysis) {
  std::vector<const CommunicatorFigures*> used;
  for (const CommunicatorFigures& row : analysis.communicators) {
    if (row.calls > 0) used.push_back(&row);
  }
  if (used.size() < 2) return {};
  Table table(fmt::format("Communicators (calls and waiting summed over ranks{})", between_nodes_text(analysis)), 1,
              {"name", "ranks", "calls", "worst-case imbalance", "waiting"});
  for (std::size_t i = 0; i < std::min(most_communicators_listed, used.size()); ++i) {
    const CommunicatorFigures& row = *used[i];
    table.add({shortened(row.name, widest_name), fmt::format("{}", row.size), count_text(row.calls),
               row.compared > 0 ? time_text(row.worst_ns) : "-", row.compared > 0 ? time_text(row.waiting_ns) : "-"});
  }
  std::string page = table.text();
  if (used.size() > most_communicators_listed) {
    page += fmt::format("  and {} more, in report.json\n", used.size() - most_communicators_listed);
  }
  return page;
}

}  // namespace papaya::report
