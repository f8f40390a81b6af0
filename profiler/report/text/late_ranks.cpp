// Who is late, what the system gave those ranks, and where most was waited.
#include <fmt/format.h>

#include <algorithm>

#include "base/mpi_name.hpp"
#include "profiler/read/units.hpp"
#include "profiler/report/text/layout.hpp"
#include "profiler/report/text/sections.hpp"

namespace papaya::report {
namespace {

constexpr std::size_t most_costly_calls_listed = 5;
constexpr double least_costly_share = 0.01;  // of all waiting

}  // namespace

std::string late_ranks_text(const Analysis& analysis) {
  if (analysis.compared_calls == 0) return {};
  Table table(fmt::format("Late ranks (times last: by more than the clocks' error; lateness: after the first, on "
                          "average; longest: wait for it; caused: waiting of others for it; began: waiting, for it or "
                          "for others, that it began by computing longer than they{})",
                          between_nodes_text(analysis)),
              2,
              {"rank", "node", "times last", "of calls", "lateness", "longest", "it waited", "began", "caused",
               "of all waiting"});
  std::size_t listed = 0;
  for (const RankFigures& rank : analysis.late_ranks) {
    if (rank.compared == 0 || listed == most_ranks_listed) continue;
    ++listed;
    table.add({fmt::format("{}", rank.rank), fmt::format("{}", rank.node), count_text(rank.times_last),
               fmt::format("{:.1f}%",
                           100 * share_of(static_cast<double>(rank.times_last), static_cast<double>(rank.compared))),
               time_text(rank.late_ns), time_text(rank.largest_delay_ns), time_text(rank.waited_ns),
               time_text(rank.began_ns), time_text(rank.caused_ns),
               share_bar(share_of(rank.caused_ns, analysis.waiting_ns))});
  }
  std::string page = table.text();
  const auto compared =
      static_cast<std::size_t>(std::count_if(analysis.late_ranks.begin(), analysis.late_ranks.end(),
                                             [](const RankFigures& rank) { return rank.compared > 0; }));
  if (compared > listed) page += fmt::format("  and {} more ranks, in report.json\n", compared - listed);
  return page;
}

// The same ranks, and why they may be slow.
std::string usage_text(const Analysis& analysis) {
  if (analysis.compared_calls == 0 || !analysis.median_usage.is_known) return {};
  Table table(
      "Late ranks, and what the system gave them (from MPI_Init to MPI_Finalize; CPU time: of all threads; no core: "
      "ready to run, but no core was free; switched out: involuntarily; from disk: page faults)",
      3, {"rank", "node", "core", "CPU time", "no core", "switched out", "from disk", "peak memory"});
  const auto add = [&](std::string rank, std::string node, std::string core, const UsageFigures& usage) {
    table.add({std::move(rank), std::move(node), std::move(core), fmt::format("{:.1f}%", 100 * usage.cpu_share),
               usage.knows_core_wait ? fmt::format("{:.1f}%", 100 * usage.core_wait_share) : "not known",
               fmt::format("{:.1f}/s", usage.involuntary_per_s), fmt::format("{:.0f}", usage.major_faults),
               bytes_text(usage.peak_bytes)});
  };
  std::size_t listed = 0;
  for (const RankFigures& rank : analysis.late_ranks) {
    if (rank.compared == 0 || !rank.usage.is_known || listed == most_ranks_listed) continue;
    ++listed;
    const UsageFigures& usage = rank.usage;
    add(fmt::format("{}", rank.rank), fmt::format("{}", rank.node),
        usage.core < 0         ? "not known"
        : usage.core_ghz > 0.0 ? fmt::format("{} ({:.2f} GHz)", usage.core, usage.core_ghz)
                               : fmt::format("{}", usage.core),
        usage);
  }
  add("median", "", "", analysis.median_usage);
  return table.text();
}

std::string costly_calls_text(const Analysis& analysis) {
  Table table(fmt::format("Costliest calls (waiting: summed over ranks{})", between_nodes_text(analysis)), 2,
              {"call", "number", "at", "longest wait", "for rank", "waiting", "of all waiting"});
  for (std::size_t i = 0; i < std::min(most_costly_calls_listed, analysis.costly_calls.size()); ++i) {
    const CostlyCall& call = analysis.costly_calls[i];
    if (call.waiting_ns < least_costly_share * analysis.waiting_ns) break;
    table.add(
        {call.name, count_text(call.call), time_text(call.begin_ns), time_text(call.delay_ns),
         fmt::format("{}", call.rank), time_text(call.waiting_ns),
         share_bar(share_of(call.waiting_ns, analysis.waiting_ns))},
        {fmt::format("on {}{}", call.communicator, call.frames.empty() ? "" : ", at " + call_site_text(call.frames))});
  }
  return table.empty() ? std::string() : table.text();
}

// What is known of calls that the rings no longer hold.
std::string whole_run_text(const Analysis& analysis) {
  const WholeRun& whole = analysis.whole_run;
  if (!analysis.is_overwritten || whole.all.calls == 0) return {};
  Table ranks(
      fmt::format(
          "Late ranks over the whole run, each within its node ({} calls{}, compared while the job ran: longest wait "
          "of a call {} on average, {} at most)",
          count_text(whole.all.calls), analysis.nodes > 1 ? ", each once for every node" : "",
          time_text(whole.all.worst_ns), time_text(whole.all.most_ns)),
      2, {"rank", "node", "times last", "of calls", "waiting caused", "of all waiting"});
  for (std::size_t i = 0; i < std::min(most_ranks_listed, whole.last.size()); ++i) {
    const WholeRun::Last& last = whole.last[i];
    ranks.add(
        {fmt::format("{}", last.rank), fmt::format("{}", last.node), count_text(last.times_last),
         fmt::format("{:.1f}%", 100 * share_of(static_cast<double>(last.times_last), static_cast<double>(last.calls))),
         time_text(last.caused_ns), share_bar(share_of(last.caused_ns, whole.all.waiting_ns))});
  }
  std::string page = ranks.text();
  if (whole.last.size() > most_ranks_listed)
    page += fmt::format("  and {} more ranks, in report.json\n", whole.last.size() - most_ranks_listed);
  if (whole.given_up > 0)
    page +=
        wrap(fmt::format("{} more calls were not compared: a rank arrived too late for that, or did not record them.",
                         count_text(whole.given_up)),
             "  ", 2);
  Table sites("Call sites over the whole run, each within its node", 1,
              {"call", "calls", "worst-case", "at most", "waiting", "of all waiting", "most waited for"});
  for (std::size_t i = 0; i < std::min(most_call_sites_listed, whole.sites.size()); ++i) {
    const WholeRun::Site& site = whole.sites[i];
    sites.add({mpi_name(site.collective, Form::blocking), count_text(site.tally.calls), time_text(site.tally.worst_ns),
               time_text(site.tally.most_ns), time_text(site.tally.waiting_ns),
               share_bar(share_of(site.tally.waiting_ns, whole.all.waiting_ns)),
               site.last.empty() ? "-"
                                 : fmt::format("rank {}, last {}", site.last.front().rank,
                                               share_text(share_of(static_cast<double>(site.last.front().times_last),
                                                                   static_cast<double>(site.last.front().calls))))},
              {call_site_text(site.frames)});
  }
  if (!sites.empty()) page += sites.text();
  if (whole.sites.size() > most_call_sites_listed)
    page += fmt::format("  and {} more, in report.json\n", whole.sites.size() - most_call_sites_listed);
  return page;
}

}  // namespace papaya::report
