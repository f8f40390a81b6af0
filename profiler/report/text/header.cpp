// What a run was: the first lines of report.txt; and what ranks were inside of when it ended.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <string_view>

#include "profiler/read/units.hpp"
#include "profiler/report/notes.hpp"
#include "profiler/report/text/layout.hpp"
#include "profiler/report/text/sections.hpp"

namespace papaya::report {
namespace {

constexpr std::size_t most_nodes_listed = 8;
constexpr double shortest_reported_wait_ns = 1e8;

std::string when_text(std::int64_t unix_ns) {
  const std::time_t seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  std::tm local{};
  char text[64];
  if (localtime_r(&seconds, &local) == nullptr) return "at an unknown time";
  const std::size_t length = std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", &local);
  return std::string(text, length);
}

// On several nodes who runs where, with few nodes only.
std::string ranks_line(const Analysis& analysis) {
  std::string text = fmt::format("{} on {} {}", analysis.ranks, analysis.nodes, analysis.nodes == 1 ? "node" : "nodes");
  for (std::size_t i = 0; i < analysis.node_figures.size(); ++i) {
    const NodeFigures& node = analysis.node_figures[i];
    text += i == 0 ? ": " : "; ";
    if (i == most_nodes_listed) {
      return text + fmt::format("and {} more nodes", analysis.node_figures.size() - most_nodes_listed);
    }
    text += analysis.nodes == 1 ? node.host : fmt::format("{} ({})", node.host, ranks_text(node.ranks));
  }
  return text;
}

std::string cores_line(const Analysis& analysis) {
  if (analysis.cores == 0) return {};
  std::string text = fmt::format("{} for {}", counted(static_cast<std::uint64_t>(analysis.cores), "core", "cores"),
                                 counted(static_cast<std::uint64_t>(analysis.ranks), "rank", "ranks"));
  if (analysis.crowded_ranks > 0)
    text += fmt::format(
        ": ranks share cores{}, so that one that computes can make another late, and one that waits can help it",
        analysis.nodes > 1 ? fmt::format(" ({} ranks on the {} of a node)", analysis.crowded_ranks,
                                         counted(static_cast<std::uint64_t>(analysis.crowded_cores), "core", "cores"))
                           : "");
  else if (analysis.median_usage.knows_core_wait && analysis.median_usage.core_wait_share >= least_core_wait_share)
    text += fmt::format(
        ": ranks were ready to run but had no core for {} of the time (median): other processes or threads use them",
        share_text(analysis.median_usage.core_wait_share));
  return text;
}

// Alpha, by which the factors are divided.
std::string messages_line(const Analysis& analysis) {
  std::string within;
  std::string between;
  const auto add = [](std::string& text, std::uint64_t bytes, double ns) {
    if (ns <= 0) return;
    text += fmt::format("{}{} in {}", text.empty() ? "" : ", ", bytes_text(static_cast<double>(bytes)), time_text(ns));
  };
  for (const MessageTime& time : analysis.message_times) {
    add(within, time.bytes, time.node_ns);
    add(between, time.bytes, time.cluster_ns);
  }
  if (!within.empty() && analysis.nodes > 1) within += " within a node";
  if (!between.empty()) between += " between nodes";
  return within + (within.empty() || between.empty() ? "" : "; ") + between;
}

std::string clock_line(const Analysis& analysis) {
  if (analysis.nodes == 1) return "one node, one clock";
  if (!analysis.clock_measured) return "the clocks of the nodes were not compared";
  return fmt::format(
      "the clocks of the nodes are known to within {}, or {} if messages take longer one way than the other",
      time_text(analysis.clock_error_ns), time_text(std::max(analysis.clock_bound_ns, analysis.clock_error_ns)));
}

// Those that differ from the defaults.
std::string settings_line(const std::vector<Setting>& settings) {
  std::string text;
  for (const Setting& setting : settings) {
    if (setting.is_default) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", setting.name, setting.value);
  }
  return text;
}

}  // namespace

std::string header_text(const Analysis& analysis) {
  std::string page = "papaya: who arrives late at which collective, and what that costs\n\n";
  const auto field = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) page += wrap(value, fmt::format("{:<10}", name), 10);
  };
  field("Program", analysis.program);
  if (analysis.command != analysis.program) field("Command", analysis.command);
  field("MPI", analysis.mpi);
  field("Ranks", ranks_line(analysis));
  field("Cores", cores_line(analysis));
  field("Run", fmt::format("{}, {} from MPI_Init to {}", when_text(analysis.begin_unix_ns), time_text(analysis.run_ns),
                           analysis.finalized ? "MPI_Finalize" : "the end of the record"));
  field("Clock", clock_line(analysis));
  field("Messages", messages_line(analysis));
  field("Settings", settings_line(analysis.settings));
  return page;
}

std::string pending_text(const Analysis& analysis) {
  if (analysis.pending.empty()) return {};
  std::string page = "\nInside a collective when the record ended\n";
  for (const PendingCall& pending : analysis.pending) {
    const bool one = pending.inside.size() == 1 && pending.inside.front().first == pending.inside.front().last;
    std::string text =
        pending.conflict.empty()
            ? fmt::format("{} {} inside {}, call {} on {}, when the record ended", ranks_text(pending.inside),
                          one ? "was" : "were", pending.name, pending.call, pending.communicator)
            : fmt::format("{} {} inside call {} on {} when the record ended", ranks_text(pending.inside),
                          one ? "was" : "were", pending.call, pending.communicator);
    // How long after the last record the job went on is not known; next to nothing would mislead.
    if (!pending.call_site.empty() && pending.conflict.empty()) text += ", at " + frame_text(pending.call_site.front());
    if (pending.waited_ns >= shortest_reported_wait_ns) {
      text += fmt::format(", for {} or longer", time_text(pending.waited_ns));
    }
    page += wrap(text + ".", "  ", 2);
    std::string others;
    if (!pending.conflict.empty()) {
      others = fmt::format("The ranks disagree about the collective: {}.", pending.conflict);
    } else if (!pending.not_arrived.empty()) {
      others = fmt::format("Not arrived: {}.", ranks_text(pending.not_arrived));
    } else if (pending.unknown_not_arrived > 0) {
      others =
          fmt::format("Not arrived: {} of its ranks, which never used this communicator.", pending.unknown_not_arrived);
    } else if (!pending.unread_ranks) {
      others = "All its ranks had arrived.";
    }
    if (pending.unread_ranks) others += " Whether the ranks without a usable record had arrived is unknown.";
    page += wrap(others, "    ", 4);
    for (const LastSign& sign : pending.last_signs) {
      if (sign.name.empty()) continue;
      page += wrap(fmt::format("rank {} {} {}, call {} on {}{}", sign.rank, sign.inside ? "entered" : "last left",
                               sign.name, sign.call, sign.communicator,
                               sign.call_site.empty() ? "" : ", at " + call_site_text(sign.call_site)),
                   "    ", 6);
    }
  }
  return page;
}

}  // namespace papaya::report
