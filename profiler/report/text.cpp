// report.txt: header, verdict, what to know before trusting the figures, tables, where the files are.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <span>
#include <string_view>
#include <utility>

#include "base/mpi_name.hpp"
#include "profiler/analysis/horovod.hpp"
#include "profiler/read/units.hpp"
#include "profiler/report/report.hpp"

namespace papaya::report {
namespace {

constexpr std::size_t page_columns = 100;
constexpr std::size_t most_ranks_listed = 12;
constexpr std::size_t most_communicators_listed = 10;
constexpr std::size_t most_nodes_listed = 8;
constexpr std::size_t most_call_sites_listed = 10;
constexpr std::size_t most_savings_listed = 5;
constexpr std::size_t most_costly_calls_listed = 5;
constexpr double least_saving = 0.01;          // of the run
constexpr double least_costly_share = 0.01;    // of all waiting
constexpr std::size_t widest_algorithms = 28;  // "arrival_leader, arrival_tree"
constexpr std::size_t bar_columns = 8;
constexpr std::size_t time_columns = 20;
constexpr std::size_t most_functions_listed = 12;
constexpr double shortest_reported_wait_ns = 1e8;
constexpr const char* size_names[size_class_count] = {"up to 1 KiB", "up to 1 MiB", "larger"};

// Columns on a terminal: one for each code point. Names of programs may use more; they stand last on their
// lines.
std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string bytes_text(double bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  while (bytes >= 1023.5 && unit + 1 < std::size(units)) {
    bytes /= 1024;
    ++unit;
  }
  const int digits = unit == 0 || bytes >= 99.95 ? 0 : bytes >= 9.995 ? 1 : 2;
  std::string number = fmt::format("{:.{}f}", bytes, digits);
  if (number.find('.') != std::string::npos) {  // 8 KiB, not 8.00 KiB
    number.erase(number.find_last_not_of('0') + 1);
    if (number.back() == '.') number.pop_back();
  }
  return number + " " + units[unit];
}

std::string factor_text(double factor) {
  if (factor >= 99.5 && factor < 1e15) return count_text(static_cast<std::uint64_t>(std::round(factor))) + "x";
  if (factor >= 99.5) return fmt::format("{:.3g}x", factor);
  return fmt::format("{:.{}f}x", factor, factor < 9.995 ? 2 : 1);
}

// A bar of `bar_columns` for the whole, in eighths of a column.
std::string bar(double share) {
  constexpr const char* eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double clamped = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0.0;
  const auto filled = static_cast<std::size_t>(std::round(clamped * bar_columns * 8));
  std::string text;
  for (std::size_t i = 0; i < filled / 8; ++i) text += "█";
  text += eighths[filled % 8];
  text.append(bar_columns - columns_of(text), ' ');
  return text;
}

std::string share_bar(double share) {
  return fmt::format("{} {:>5}", bar(share), fmt::format("{:.1f}%", share * 100));
}

double share_of(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

// Breaks at spaces; a word longer than a line is cut.
std::string wrap(std::string_view text, std::string_view first_indent, std::size_t indent) {
  std::string page;
  std::string line(first_indent);
  std::size_t used = columns_of(line);
  bool line_is_empty = true;
  const auto end_line = [&] {
    page += line + "\n";
    line.assign(indent, ' ');
    used = indent;
    line_is_empty = true;
  };
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, space);
    text.remove_prefix(std::min(space + 1, text.size()));
    if (word.empty()) continue;
    if (!line_is_empty && used + 1 + columns_of(word) > page_columns) end_line();
    if (!line_is_empty) {
      line += ' ';
      ++used;
    }
    while (used + columns_of(word) > page_columns) {
      std::size_t cut = 0;
      for (std::size_t room = page_columns - used; room > 0; --room) {
        ++cut;
        while (cut < word.size() && (static_cast<unsigned char>(word[cut]) & 0xc0) == 0x80) ++cut;
      }
      line += word.substr(0, cut);
      word.remove_prefix(cut);
      end_line();
    }
    line += word;
    used += columns_of(word);
    line_is_empty = false;
  }
  return page + line + "\n";
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// Columns as wide as their widest cell: the first `left_columns` left-aligned, the others right-aligned, the
// last one left-aligned again where it holds words.
class Table {
 public:
  Table(std::string title, std::size_t left_columns, std::vector<std::string> names, bool last_is_words = false)
      : title_(std::move(title)), left_columns_(left_columns), last_is_words_(last_is_words) {
    add(std::move(names));
  }
  // `below`: what is said of the row on lines of its own.
  void add(std::vector<std::string> row, std::vector<std::string> below = {}) {
    rows_.push_back(std::move(row));
    below_.push_back(std::move(below));
  }
  bool empty() const { return rows() == 0; }
  std::size_t rows() const { return rows_.size() - 1; }

  std::string text() const {
    std::vector<std::size_t> widths(rows_.front().size());
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
    }
    std::string page = "\n" + wrap(title_, "", 0);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const auto& row = rows_[r];
      std::string line;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string padding(widths[i] - columns_of(row[i]), ' ');
        line += "  ";
        const bool is_left = i < left_columns_ || (last_is_words_ && i + 1 == row.size());
        line += is_left ? row[i] + padding : padding + row[i];
      }
      page += without_trailing_spaces(std::move(line)) + "\n";
      for (const std::string& text : below_[r]) page += wrap(text, "    ", 6);
    }
    return page;
  }

 private:
  std::string title_;
  std::size_t left_columns_;
  bool last_is_words_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::vector<std::string>> below_;  // each row
};

std::string when_text(std::int64_t unix_ns) {
  const std::time_t seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  std::tm local{};
  char text[64];
  if (localtime_r(&seconds, &local) == nullptr) return "at an unknown time";
  const std::size_t length = std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", &local);
  return std::string(text, length);
}

std::string ranks_of(const std::vector<RankRange>& ranges) {
  const bool one = ranges.size() == 1 && ranges.front().first == ranges.front().last;
  return fmt::format("{} {}", one ? "rank" : "ranks", to_text(ranges));
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
    text += analysis.nodes == 1 ? node.host : fmt::format("{} ({})", node.host, ranks_of(node.ranks));
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

// Beside figures that compare nodes. Two nodes' clocks may both be off.
std::string between_nodes_text(const Analysis& analysis) {
  if (analysis.nodes < 2) return {};
  return fmt::format("; between nodes to within {}", time_text((analysis.nodes > 2 ? 2 : 1) * analysis.clock_error_ns));
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

std::string header(const Analysis& analysis) {
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
            ? fmt::format("{} {} inside {}, call {} on {}, when the record ended", ranks_of(pending.inside),
                          one ? "was" : "were", pending.name, pending.call, pending.communicator)
            : fmt::format("{} {} inside call {} on {} when the record ended", ranks_of(pending.inside),
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
      others = fmt::format("Not arrived: {}.", ranks_of(pending.not_arrived));
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

std::string collectives_text(const Analysis& analysis) {
  double total_ns = 0;
  for (const CollectiveFigures& figures : analysis.collectives) total_ns += figures.ns;
  Table table("Collectives (summed over ranks, exact)", 1,
              {"call", "calls", "bytes", "per call", "time", "per call", "share of time "});
  for (const CollectiveFigures& figures : analysis.collectives) {
    const auto calls = static_cast<double>(figures.calls);
    table.add({figures.name, count_text(figures.calls), bytes_text(static_cast<double>(figures.bytes)),
               bytes_text(static_cast<double>(figures.bytes) / calls), time_text(figures.ns),
               time_text(figures.ns / calls), share_bar(share_of(figures.ns, total_ns))});
  }
  return table.empty() ? std::string() : table.text();
}

std::string sizes_text(const Analysis& analysis) {
  Table table("By message size", 2, {"call", "size", "calls", "share of calls", "time", "share of time "});
  for (const CollectiveFigures& figures : analysis.collectives) {
    std::string name = figures.name;
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

std::string imbalance_text(const Analysis& analysis) {
  std::string page = imbalance_table(
      analysis,
      fmt::format(
          "Arrival imbalance{} (average over calls; worst-case: first to last arrival; average-case: mean "
          "distance from the mean arrival; factor: divided by alpha, the time to send one such message; waiting: what "
          "that costs, summed over ranks: a root ahead of its receivers waits for nobody{}{})",
          analysis.nodes > 1 ? " over all ranks" : "", analysis.alpha_nominal ? ", nominal here" : "",
          between_nodes_text(analysis)),
      &Imbalances::cluster);
  if (analysis.nodes > 1) {
    page += imbalance_table(analysis, "Arrival imbalance within nodes (average over nodes, then over calls)",
                            &Imbalances::node);
  }
  return page;
}

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

// What it would bring if ranks were as quick as the others.
std::string what_if_text(const Analysis& analysis) {
  const WhatIf& what_if = analysis.what_if;
  if (!what_if.is_known || what_if.all_ns < least_saving * analysis.run_ns) return {};
  Table table(
      fmt::format(
          "What if (an estimate of the run, if a rank computed no longer between its calls than the median of the "
          "ranks{}; it takes {})",
          analysis.crowded_ranks > 0 ? "; ranks share cores, which is not in it" : "", time_text(analysis.run_ns)),
      1, {"rank", "run", "shorter by", "of the run"});
  const auto add = [&](std::string who, double ns) {
    table.add(
        {std::move(who), time_text(analysis.run_ns - ns), time_text(ns), share_bar(share_of(ns, analysis.run_ns))});
  };
  add("all", what_if.all_ns);
  for (std::size_t i = 0; i < std::min(most_savings_listed, what_if.ranks.size()); ++i)
    if (what_if.ranks[i].ns >= least_saving * analysis.run_ns)
      add(fmt::format("{}", what_if.ranks[i].rank), what_if.ranks[i].ns);
  return table.text();
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
  const auto calls = static_cast<double>(whole.all.calls);
  Table ranks(
      fmt::format(
          "Late ranks over the whole run, each within its node ({} calls, compared while the job ran: first to last "
          "arrival {} on average, {} at most)",
          count_text(whole.all.calls), time_text(whole.all.worst_ns), time_text(whole.all.most_ns)),
      2, {"rank", "node", "times last", "of calls", "waiting caused", "of all waiting"});
  for (std::size_t i = 0; i < std::min(most_ranks_listed, whole.last.size()); ++i) {
    const WholeRun::Last& last = whole.last[i];
    ranks.add({fmt::format("{}", last.rank), fmt::format("{}", last.node), count_text(last.times_last),
               fmt::format("{:.1f}%", 100 * share_of(static_cast<double>(last.times_last), calls)),
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
                                                                   static_cast<double>(site.tally.calls))))},
              {call_site_text(site.frames)});
  }
  if (!sites.empty()) page += sites.text();
  if (whole.sites.size() > most_call_sites_listed)
    page += fmt::format("  and {} more, in report.json\n", whole.sites.size() - most_call_sites_listed);
  return page;
}

std::string phases_text(const Analysis& analysis) {
  Table table(
      fmt::format("Phases of the program (calls, time and waiting summed over ranks, as far as the record goes back{})",
                  between_nodes_text(analysis)),
      1, {"phase", "calls", "time", "worst-case", "waiting", "of all waiting", "excess"});
  for (const PhaseFigures& phase : analysis.phases)
    table.add({phase.name.empty() ? "(none)" : phase.name, count_text(phase.calls), time_text(phase.ns),
               phase.compared > 0 ? time_text(phase.worst_ns) : "-",
               phase.compared > 0 ? time_text(phase.waiting_ns) : "-",
               share_bar(share_of(phase.waiting_ns, analysis.waiting_ns)),
               phase.compared > 0 ? time_text(phase.excess_ns) : "-"});
  return table.empty() ? std::string() : table.text();
}

// Waited, stale, most, took part, saved.
std::vector<std::string> weak_cells(const WeakSums& sums) {
  const bool has_age = sums.aged_calls > 0;
  return {time_text(sums.waited_ns), has_age ? fmt::format("{:.2f}", sums.staleness) : "-",
          has_age ? count_text(sums.most_staleness) : "-", share_text(sums.share),
          sums.compared == 0    ? "-"
          : sums.saved_ns() < 0 ? "-" + time_text(-sums.saved_ns())
                                : time_text(sums.saved_ns())};
}

std::vector<std::string> weak_row(std::vector<std::string> first, const WeakSums& sums) {
  for (std::string& cell : weak_cells(sums)) first.push_back(std::move(cell));
  return first;
}

std::string weak_text(const Analysis& analysis) {
  Table table(
      "Weakly consistent collectives (calls, time and waiting summed over ranks; stale: calls that the oldest "
      "contribution to a result is behind, on average and at most; took part: of the elements or ranks. Saved, an "
      "estimate: what ranks would have waited in consistent collectives, with the same work between calls, less what "
      "they waited)",
      2, {"collective", "algorithm", "calls", "time", "waited", "stale", "most", "took part", "saved"});
  for (const WeakFigures& figures : analysis.weak) {
    const WeakSums& sums = figures.sums;
    std::string below = figures.parameters.empty() ? "" : figures.parameters + "; ";
    below += bytes_text(static_cast<double>(sums.bytes));
    if (sums.compared > 0)
      below += fmt::format("; consistent: {} of waiting, in {} of which the record has all ranks",
                           time_text(sums.consistent_waiting_ns), counted(sums.compared, "call", "calls"));
    table.add(
        weak_row({figures.collective, figures.algorithm, count_text(sums.calls), time_text(sums.inside_ns)}, sums),
        {below});
  }
  return table.empty() ? std::string() : table.text();
}

// "rank 2, 83 %": whom the others would have waited for most, and how much of it was for that one.
std::string awaited_text(const WeakSite& site) {
  if (site.awaited.empty()) return "-";
  const WeakAwaited& most = site.awaited.front();
  return fmt::format("rank {}, {}", most.rank, share_text(share_of(most.waiting_ns, site.sums.consistent_waiting_ns)));
}

std::string weak_sites_text(const Analysis& analysis) {
  Table table(
      "Call sites of weakly consistent collectives (as above, as far as the record goes back; late: whom ranks would "
      "have waited for most in consistent collectives, and how much of that waiting was for it)",
      1, {"collective", "calls", "time", "waited", "stale", "most", "took part", "saved", "late"});
  for (const WeakFigures& figures : analysis.weak) {
    std::size_t listed = 0;
    for (const WeakSite& site : figures.sites) {
      if (site.frames.empty() || listed == most_call_sites_listed) continue;
      ++listed;
      std::vector<std::string> row =
          weak_row({figures.collective, count_text(site.sums.calls), time_text(site.sums.inside_ns)}, site.sums);
      row.push_back(awaited_text(site));
      table.add(std::move(row), {call_site_text(site.frames) +
                                 (site.ended.empty() ? "" : "; waited for at " + call_site_text(site.ended))});
    }
  }
  return table.empty() ? std::string() : table.text();
}

std::string weak_phases_text(const Analysis& analysis) {
  Table table("Weakly consistent collectives in the phases of the program (as above, as far as the record goes back)",
              2, {"phase", "collective", "calls", "time", "waited", "stale", "most", "took part", "saved"});
  for (const WeakFigures& figures : analysis.weak)
    for (const WeakPhase& phase : figures.phases)
      table.add(weak_row({phase.name.empty() ? "(none)" : phase.name, figures.collective, count_text(phase.sums.calls),
                          time_text(phase.sums.inside_ns)},
                         phase.sums));
  return table.empty() ? std::string() : table.text();
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

// "persistent straggler, rank 3 (predictability 0.97)"
std::string pattern_text(const CallSiteFigures& site) {
  const SitePattern& pattern = site.pattern;
  std::string text = fmt::format("arrivals: {}", site.compared == 0 ? "not compared" : text_of(pattern.pattern));
  if (pattern.straggler >= 0) text += fmt::format(", rank {}", pattern.straggler);
  if (pattern.predictability)
    text += fmt::format(" (predictability {:.2f}, of {} imbalanced calls)", *pattern.predictability,
                        count_text(pattern.imbalanced));
  return text;
}

std::string call_sites_text(const Analysis& analysis) {
  Table table(fmt::format("Call sites (calls and waiting summed over ranks, as far as the record goes back{})",
                          between_nodes_text(analysis)),
              1, {"call", "calls", "worst-case", "waiting", "of all waiting", "most often last"});
  std::size_t listed = 0;
  for (const CallSiteFigures& site : analysis.call_sites) {
    if (site.form != Form::blocking || listed == most_call_sites_listed) continue;
    ++listed;
    const HorovodUse use = horovod_use(site);
    const double calls = static_cast<double>(site.compared);
    table.add(
        {site.name, count_text(site.calls), site.compared > 0 ? time_text(site.worst_ns) : "-",
         site.compared > 0 ? time_text(site.waiting_ns) : "-",
         share_bar(share_of(site.waiting_ns, analysis.waiting_ns)),
         site.last.empty() ? "-"
                           : fmt::format("rank {}, {}", site.last.front().rank,
                                         share_text(share_of(static_cast<double>(site.last.front().times), calls)))},
        {(use == HorovodUse::none ? "" : fmt::format("Horovod {}: ", name_of(use))) + call_site_text(site.frames),
         pattern_text(site)});
  }
  if (table.empty()) return {};
  std::string page = table.text();
  const auto all =
      static_cast<std::size_t>(std::count_if(analysis.call_sites.begin(), analysis.call_sites.end(),
                                             [](const auto& site) { return site.form == Form::blocking; }));
  if (all > listed) page += fmt::format("  and {} more, in report.json\n", all - listed);
  return page;
}

// "1.2 s, 3.4%", of the run; "-" where it is not known or nothing.
std::string saving_text(const Saving& saving, double span_ns) {
  if (!std::isfinite(saving.run_ns) || saving.run_ns <= 0) return "-";
  return fmt::format("{}, {:.1f}%", time_text(saving.run_ns), 100 * share_of(saving.run_ns, span_ns));
}

std::string savings_text(const Analysis& analysis) {
  Table table(
      fmt::format("Estimated savings (the recorded arrivals replayed, with the same work between calls. "
                  "Excess: summed over ranks. {} shorter: without any excess, and by the papaya algorithm that a "
                  "model of the measured message times finds best, in the calls that were left to MPI)",
                  analysis.is_overwritten ? "The recorded part of the run" : "Run"),
      1, {"call", "excess", "run shorter without", "by an algorithm", "which"}, true);
  const auto add = [&](const std::string& name, const Savings& savings, std::vector<std::string> below) {
    const Savings::Candidate* const best = savings.best();
    table.add({name, time_text(savings.no_excess.ranks_ns), saving_text(savings.no_excess, savings.span_ns),
               best == nullptr ? "-" : saving_text(best->saving, savings.span_ns),
               best != nullptr          ? (best->algorithm.size() <= widest_algorithms ? best->algorithm : "several")
               : savings.open_calls > 0 ? "native"
                                        : "-"},
              std::move(below));
  };
  if (analysis.savings.calls == 0) return {};
  add("all", analysis.savings, {});
  std::vector<const CallSiteFigures*> sites;
  for (const CallSiteFigures& site : analysis.call_sites)
    if (site.savings.calls > 0) sites.push_back(&site);
  std::stable_sort(sites.begin(), sites.end(), [](const auto* a, const auto* b) {
    return a->savings.no_excess.ranks_ns > b->savings.no_excess.ranks_ns;
  });
  const std::size_t listed = std::min(sites.size(), most_savings_listed);
  for (std::size_t i = 0; i < listed; ++i) add(sites[i]->name, sites[i]->savings, {call_site_text(sites[i]->frames)});
  std::string page = table.text();
  if (sites.size() > listed) page += fmt::format("  and {} more, in report.json\n", sites.size() - listed);
  return page;
}

// What Horovod makes its calls for.
std::string horovod_text(const Analysis& analysis) {
  if (analysis.horovod_library.empty()) return {};
  Table table(
      fmt::format(
          "Horovod ({} of each rank calls MPI, from {}; calls, time and waiting summed over ranks, as far as the "
          "record goes back)",
          analysis.horovod_threads, analysis.horovod_library),
      1, {"what for", "calls", "bytes", "per call", "time", "waiting", "of all waiting"});
  for (const HorovodUse use : horovod_uses) {
    CallSiteFigures sum;
    for (const CallSiteFigures& site : analysis.call_sites) {
      if (horovod_use(site) != use) continue;
      sum.calls += site.calls;
      sum.bytes += site.bytes;
      sum.ns += site.ns;
      sum.waiting_ns += site.waiting_ns;
    }
    if (sum.calls == 0) continue;
    const auto bytes = static_cast<double>(sum.bytes);
    table.add({std::string(text_of(use)), count_text(sum.calls), bytes_text(bytes),
               bytes_text(bytes / static_cast<double>(sum.calls)), time_text(sum.ns), time_text(sum.waiting_ns),
               share_bar(share_of(sum.waiting_ns, analysis.waiting_ns))});
  }
  return table.text();
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
    std::string name = row.name;
    if (columns_of(name) > 56) name = fmt::format("{:.53}...", name);
    table.add({std::move(name), fmt::format("{}", row.size), count_text(row.calls),
               row.compared > 0 ? time_text(row.worst_ns) : "-", row.compared > 0 ? time_text(row.waiting_ns) : "-"});
  }
  std::string page = table.text();
  if (used.size() > most_communicators_listed) {
    page += fmt::format("  and {} more, in report.json\n", used.size() - most_communicators_listed);
  }
  return page;
}

std::string render(const Report& report) {
  std::string page;
  for (const ApproxFigures& figures : report.approx) page += wrap("PAPAYA_APPROX: " + figures.sentence() + ".", "", 0);
  if (!page.empty()) page += "\n";
  if (report.usable) page += header(report) + "\n";
  page += wrap(report.verdict, "", 0);
  if (!report.notes.empty()) page += "\nNote\n";
  for (const std::string& note : report.notes) page += wrap(note, "  - ", 4);
  if (!report.usable) return page;
  page += pending_text(report);
  page += rank_times_text(report);
  page += functions_text(report);
  page += collectives_text(report);
  page += sizes_text(report);
  page += imbalance_text(report);
  page += late_ranks_text(report);
  page += what_if_text(report);
  page += usage_text(report);
  page += costly_calls_text(report);
  page += whole_run_text(report);
  page += horovod_text(report);
  page += call_sites_text(report);
  page += phases_text(report);
  page += weak_text(report);
  page += weak_sites_text(report);
  page += weak_phases_text(report);
  page += inside_text(report);
  page += savings_text(report);
  page += algorithms_text(report);
  page += communicators_text(report);
  page +=
      "\n" + wrap(fmt::format("Files in {}: report.txt is this page, report.json has the same figures for programs, "
                              "rank-*.pap is what the ranks recorded; `papaya report` makes the first two from them, "
                              "with the names of functions.",
                              report.folder),
                  "", 0);
  return page;
}

}  // namespace

std::string to_text(const Report& report) noexcept {
  try {
    return render(report);
  } catch (...) {
    return {};  // out of memory
  }
}

}  // namespace papaya::report
