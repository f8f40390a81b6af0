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

// A bar of `time_columns` for the run, a mark for each part.
std::string time_bar(const RankTime& time, double run_ns) {
  const std::pair<const char*, double> parts[] = {{" ", time.before_ns},
                                                  {"█", time.computing_ns},
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
  Table table(
      fmt::format(
          "Time of each rank (computing: outside MPI; collectives: blocking ones, and of that waiting for late "
          "ranks{}; messages: sends, receives, and completion of requests; Finalize: until the last rank came there)",
          analysis.is_overwritten ? ", as far as the record goes back" : ""),
      2,
      {"rank", "node", "█ computing", "▒ collectives", "waiting", "▸ messages", "▸ other MPI", "· Finalize",
       fmt::format("of {}", time_text(run_ns))},
      true);
  const std::size_t half = most_ranks_listed / 2;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks.size() > most_ranks_listed && i >= half && i < ranks.size() - half) continue;
    const RankFigures& rank = *ranks[i];
    const RankTime& time = rank.time;
    const double messages_ns =
        time.of_kind[index_of(MpiKind::point_to_point)] + time.of_kind[index_of(MpiKind::completion)];
    table.add({fmt::format("{}", rank.rank), fmt::format("{}", rank.node), time_text(time.computing_ns),
               time_text(time.collectives_ns), time_text(rank.waited_ns), time_text(messages_ns),
               time_text(time.elsewhere_ns() - messages_ns - time.finalize_ns), time_text(time.finalize_ns),
               time_bar(time, run_ns)});
  }
  std::string page = table.text();
  if (ranks.size() > most_ranks_listed)
    page += fmt::format("  {} ranks that compute less than the first {} and more than the last {} are in report.json\n",
                        ranks.size() - 2 * half, half, half);
  const Efficiency& efficiency = analysis.efficiency;
  if (efficiency.is_known) {
    const std::string balance = analysis.nodes > 1
                                    ? fmt::format(" ({:.3f} within nodes x {:.3f} between them)",
                                                  efficiency.balance_within_nodes, efficiency.balance_between_nodes)
                                    : "";
    const std::string communication =
        efficiency.knows_transfer ? fmt::format(" ({:.3f} serialisation x {:.3f} transfer, the excess of collectives)",
                                                efficiency.serialisation, efficiency.transfer)
                                  : "";
    page += wrap(
        fmt::format("Parallel efficiency {:.3f} = load balance {:.3f}{} x communication efficiency {:.3f}{}; "
                    "POP: 1 is best, above 0.8 is good.",
                    efficiency.parallel, efficiency.load_balance, balance, efficiency.communication, communication),
        "  ", 2);
  }
  return page;
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
