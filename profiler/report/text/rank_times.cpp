// Where each rank's time goes, and MPI's functions other than blocking collectives.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "profiler/read/units.hpp"
#include "profiler/report/text/layout.hpp"
#include "profiler/report/text/sections.hpp"

namespace papaya::report {
namespace {

constexpr std::size_t time_columns = 20;
constexpr std::size_t most_functions_listed = 12;
constexpr std::size_t most_communicators_listed = 10;
constexpr std::size_t widest_name = 30;
constexpr std::size_t most_waits_listed = 6;
constexpr double least_wait_share = 0.001;  // of the run

// A bar of `time_columns` for the run, a mark for each part.
std::string time_bar(const RankTime& time, double run_ns) {
  const std::pair<const char*, double> parts[] = {{" ", time.before_ns},
                                                  {"█", time.computing_ns},
                                                  {"×", time.unrecorded_ns},
                                                  {"▒", time.collectives_ns},
                                                  {"▸", time.elsewhere_ns() - time.finalize_ns},
                                                  {"·", time.finalize_ns}};
  std::string text;
  std::size_t used = 0;
  double until_ns = 0;
  for (const auto& [mark, ns] : parts) {
    until_ns += ns;
    const auto end = static_cast<std::size_t>(
        std::clamp(std::round(share_of(until_ns, run_ns) * time_columns), 0.0, 1.0 * time_columns));
    for (; used < end; ++used) text += mark;
  }
  return text;
}

std::string efficiency_text(const Analysis& analysis) {
  const Efficiency& efficiency = analysis.efficiency;
  if (!efficiency.is_known) return {};
  const auto parts = [](const Efficiency& one) {
    return one.knows_transfer
               ? fmt::format(" ({:.3f} serialisation x {:.3f} transfer)", one.serialisation, one.transfer)
               : "";
  };
  const std::string balance = analysis.nodes > 1
                                  ? fmt::format(" ({:.3f} within nodes x {:.3f} between them)",
                                                efficiency.balance_within_nodes, efficiency.balance_between_nodes)
                                  : "";
  std::string page = wrap(
      fmt::format("Parallel efficiency {:.3f} = load balance {:.3f}{} x communication efficiency {:.3f}{}; "
                  "POP: 1 is best, above 0.8 is good.",
                  efficiency.parallel, efficiency.load_balance, balance, efficiency.communication, parts(efficiency)),
      "  ", 2);
  if (const PartEfficiency& part = analysis.recorded_efficiency; part.span_ns > 0)
    page +=
        wrap(fmt::format("In the last {} of the run, of which the record has all calls, communication efficiency is "
                         "{:.3f}{}.",
                         time_text(part.span_ns), part.of_part.communication, parts(part.of_part)),
             "  ", 2);
  return page;
}

// For whom ranks wait in messages, the longest first.
std::string message_waits_text(const Analysis& analysis) {
  std::vector<const RankFigures*> ranks;
  for (const RankFigures& rank : analysis.late_ranks)
    if (rank.most_waited_for >= 0 && rank.most_waited_ns >= least_wait_share * analysis.run_ns) ranks.push_back(&rank);
  if (ranks.empty()) return {};
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const auto* a, const auto* b) { return a->most_waited_ns > b->most_waited_ns; });
  std::string text;
  for (std::size_t i = 0; i < std::min(ranks.size(), most_waits_listed); ++i)
    text += fmt::format("{}rank {} for rank {} ({})", i == 0 ? "" : ", ", ranks[i]->rank, ranks[i]->most_waited_for,
                        time_text(ranks[i]->most_waited_ns));
  if (ranks.size() > most_waits_listed)
    text += fmt::format(", and {} more ranks, in report.json", ranks.size() - most_waits_listed);
  return wrap(fmt::format("For whom ranks wait most in messages{}: {}.",
                          analysis.is_overwritten ? ", as far as the record goes back" : "", text),
              "  ", 2);
}

}  // namespace

// Of each rank: those that compute longest, and those that do least.
std::string rank_times_text(const Analysis& analysis) {
  std::vector<const RankFigures*> ranks;
  for (const RankFigures& rank : analysis.late_ranks)
    if (rank.time.is_known) ranks.push_back(&rank);
  if (ranks.empty()) return {};
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const auto* a, const auto* b) { return a->time.computing_ns > b->time.computing_ns; });
  const double run_ns = analysis.run_ns;
  const bool has_unrecorded =
      std::any_of(ranks.begin(), ranks.end(), [](const auto* rank) { return rank->time.unrecorded_ns > 0; });
  std::vector<std::string> names = {"rank", "node", "█ computing"};
  if (has_unrecorded) names.emplace_back("× not recorded");
  names.insert(names.end(), {"▒ collectives", "waiting", "▸ messages", "▸ other MPI", "· Finalize",
                             fmt::format("of {}", time_text(run_ns))});
  Table table(
      fmt::format(
          "Time of each rank (computing: outside MPI; {}collectives: blocking ones, and of that waiting for late "
          "ranks{}; messages: sends, receives, and completion of requests; Finalize: until the last rank came "
          "there)",
          has_unrecorded ? "not recorded: the program had switched recording off; " : "",
          analysis.is_overwritten ? ", as far as the record goes back" : ""),
      2, std::move(names), true);
  const std::size_t half = most_ranks_listed / 2;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks.size() > most_ranks_listed && i >= half && i < ranks.size() - half) continue;
    const RankFigures& rank = *ranks[i];
    const RankTime& time = rank.time;
    const double messages_ns =
        time.of_kind[index_of(MpiKind::point_to_point)] + time.of_kind[index_of(MpiKind::completion)];
    std::vector<std::string> row = {fmt::format("{}", rank.rank), fmt::format("{}", rank.node),
                                    time_text(time.computing_ns)};
    if (has_unrecorded) row.push_back(time_text(time.unrecorded_ns));
    row.insert(row.end(), {time_text(time.collectives_ns), time_text(rank.waited_ns), time_text(messages_ns),
                           time_text(time.elsewhere_ns() - messages_ns - time.finalize_ns), time_text(time.finalize_ns),
                           time_bar(time, run_ns)});
    table.add(std::move(row));
  }
  std::string page = table.text();
  if (ranks.size() > most_ranks_listed)
    page += fmt::format("  {} ranks that compute less than the first {} and more than the last {} are in report.json\n",
                        ranks.size() - 2 * half, half, half);
  return page + message_waits_text(analysis) + efficiency_text(analysis);
}

// Of the run by its phases, and of the ranks of its communicators.
std::string efficiencies_text(const Analysis& analysis) {
  const bool has_nodes = analysis.nodes > 1;
  std::vector<std::string> names = {"phase, communicator", "ranks", "time", "parallel", "= load balance"};
  if (has_nodes) names.insert(names.end(), {"within nodes", "between"});
  names.emplace_back("x communication");
  const auto knows_transfer = [](const auto& one) { return one.efficiency.knows_transfer; };
  const bool has_transfer = std::any_of(analysis.phases.begin(), analysis.phases.end(), knows_transfer) ||
                            std::any_of(analysis.communicators.begin(), analysis.communicators.end(), knows_transfer);
  if (has_transfer) names.insert(names.end(), {"= serialisation", "x transfer"});
  Table table(
      "Efficiencies of phases and communicators (POP; a phase: without phases inside it, time: the longest that a rank "
      "was in it, ranks: that were; a communicator: its ranks over the run)",
      1, std::move(names));
  const auto add = [&](std::string name, std::uint64_t ranks, double ns, const Efficiency& one) {
    const auto cell_if = [](bool is_known, double value) { return is_known ? fmt::format("{:.3f}", value) : "-"; };
    const auto cell = [&](double value) { return cell_if(one.is_known, value); };
    std::vector<std::string> row = {std::move(name), count_text(ranks), time_text(ns), cell(one.parallel),
                                    cell(one.load_balance)};
    if (has_nodes) row.insert(row.end(), {cell(one.balance_within_nodes), cell(one.balance_between_nodes)});
    row.push_back(cell(one.communication));
    if (has_transfer)
      row.insert(row.end(),
                 {cell_if(one.knows_transfer, one.serialisation), cell_if(one.knows_transfer, one.transfer)});
    table.add(std::move(row));
  };
  bool is_unknown = false;
  for (const PhaseFigures& phase : analysis.phases) {
    if (phase.ranks == 0) continue;
    is_unknown = is_unknown || !phase.efficiency.is_known;
    add(phase.name.empty() ? "(no phase)" : phase.name, phase.ranks, phase.longest_ns, phase.efficiency);
  }
  std::size_t listed = 0;
  for (const CommunicatorFigures& one : analysis.communicators) {
    // That of the run is told above.
    if (one.calls == 0 || one.size < 2 || one.size == analysis.ranks || !one.efficiency.is_known) continue;
    if (++listed > most_communicators_listed) break;
    add(shortened(one.name, widest_name), static_cast<std::uint64_t>(one.size), analysis.run_ns, one.efficiency);
  }
  if (table.empty()) return {};
  std::string page = table.text();
  if (!has_transfer && analysis.recorded_efficiency.span_ns > 0)
    page += wrap(fmt::format("These are of the whole run. Serialisation and transfer need single calls, of which the "
                             "record has those of the last {}: see above.",
                             time_text(analysis.recorded_efficiency.span_ns)),
                 "  ", 2);
  return page + (is_unknown ? wrap("-: not known: not all of MPI's functions were timed, recording was switched "
                                   "off for a while, or the program uses weakly consistent collectives, which are not "
                                   "timed by phase.",
                                   "  ", 2)
                            : "");
}

std::string functions_text(const Analysis& analysis) {
  Table table("MPI's functions other than blocking collectives (summed over ranks, exact)", 1,
              {"function", "calls", "time", "per call", "most on rank", "there"});
  for (const FunctionFigures& function : analysis.functions) {
    if (table.rows() == most_functions_listed) break;
    table.add({function.name, count_text(function.calls), time_text(function.ns),
               time_text(function.ns / static_cast<double>(function.calls)), fmt::format("{}", function.most_rank),
               time_text(function.most_ns)});
  }
  if (table.empty()) return {};
  std::string page = table.text();
  if (analysis.functions.size() > most_functions_listed)
    page += fmt::format("  and {} more, in report.json\n", analysis.functions.size() - most_functions_listed);
  return page;
}

}  // namespace papaya::report
