// papaya top: a running job, looked at again and again.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "profiler/analysis/live_view.hpp"
#include "profiler/read/units.hpp"
#include "tools/command.hpp"
#include "tools/recorded_run.hpp"
#include "tools/symbols.hpp"
#include "tools/top_stacks.hpp"

namespace papaya {
namespace {

using Json = nlohmann::ordered_json;
using report::LiveRank;
using report::LiveView;

struct Options {
  std::string folder;
  std::string prometheus;
  double interval_s = 0;  // 0: not given
  std::uint64_t count = 0;
  std::size_t rows = 20;
  bool json = false;
  bool stacks = false;
};

constexpr double usual_interval_s = 2;
constexpr double prometheus_interval_s = 30;
constexpr double quiet_s = 10;  // without a call is worth a line

std::int64_t unix_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string clock_text(std::int64_t unix_ns) {
  const auto time = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  std::tm parts{};
  localtime_r(&time, &parts);
  return fmt::format("{:02}:{:02}:{:02}", parts.tm_hour, parts.tm_min, parts.tm_sec);
}

// ---- text

std::string score_text(double score) {
  return score < 0 ? "-" : fmt::format("{:.2f}", score);
}

std::string now_text(const LiveRank& rank) {
  if (rank.has_ended) return "in MPI_Finalize";
  std::string text = rank.inside.empty() ? fmt::format("no collective for {}", report::time_text(rank.since_ns))
                                         : fmt::format("in {} for {}", rank.inside, report::time_text(rank.since_ns));
  if (!rank.call_site.empty()) text += ", " + report::frame_text(rank.call_site.front());
  if (rank.changed_unix_ns != 0)
    text +=
        fmt::format("; computes {:.1f} times as long since {}", rank.change_ratio, clock_text(rank.changed_unix_ns));
  return text;
}

std::string to_text(const LiveView& view, const report::StackGroups& stacks, const Options& options) {
  std::string page = fmt::format(
      "{}  {}, {} on {}, MPI_Init {}; looked at: {}\n", clock_text(view.unix_ns), view.program,
      report::counted(static_cast<std::uint64_t>(view.ranks_of_job), "rank", "ranks"),
      report::counted(static_cast<std::uint64_t>(view.nodes), "node", "nodes"),
      view.has_ended ? "to MPI_Finalize " + report::time_text(view.age_ns) : report::time_text(view.age_ns) + " ago",
      report::time_text(view.interval_ns));
  page += live_verdict(view) + "\n";
  if (!view.has_ended && view.quiet_ns > quiet_s * 1e9)
    page += fmt::format("No rank has called or left a collective for {}: the job computes long, hangs or was killed.\n",
                        report::time_text(view.quiet_ns));
  page += fmt::format("\n  {:>6} {:>5} {:>9} {:>11} {:>9} {:>10} {:>8} {:>8}  {}\n", "rank", "node", "computing",
                      "collectives", "other MPI", "caused", "relative", "own past", "now");
  for (std::size_t i = 0; i < view.ranks.size() && i < options.rows; ++i) {
    const LiveRank& rank = view.ranks[i];
    page += fmt::format("  {:>6} {:>5} {:>9} {:>11} {:>9} {:>10} {:>8} {:>8}  {}\n", rank.rank, rank.node,
                        report::share_text(rank.computing_share), report::share_text(rank.collectives_share),
                        report::share_text(rank.elsewhere_share), report::time_text(rank.caused_ns),
                        score_text(rank.relative_score), score_text(rank.individual_score), now_text(rank));
  }
  if (view.ranks.size() > options.rows)
    page += fmt::format("  and {} more, with --rows\n", view.ranks.size() - options.rows);
  if (const std::string text = options.stacks ? stacks.whole() : stacks.brief(); !text.empty()) page += "\n" + text;
  return page;
}

// ---- JSON

Json score(double value) {
  return value < 0 ? Json(nullptr) : Json(value);
}

Json ranges(const std::vector<report::RankRange>& all) {
  Json array = Json::array();
  for (const report::RankRange& range : all) array.push_back({range.first, range.last});
  return array;
}

Json to_json(const report::StackGroups& stacks) {
  Json array = Json::array();
  for (const report::StackGroups::Of& one : stacks.sorted())
    array.push_back({{"ranks", ranges(one.ranks)},
                     {"first_thread", one.group.is_first},
                     {"functions", one.group.lines},
                     {"reason", one.group.reason.empty() ? Json(nullptr) : Json(one.group.reason)}});
  return array;
}

Json to_json(const LiveView& view, const report::StackGroups& stacks) {
  Json pending = Json::array();
  for (const report::PendingCall& call : view.pending)
    pending.push_back({{"name", call.name},
                       {"communicator", call.communicator},
                       {"call", call.call},
                       {"inside", ranges(call.inside)},
                       {"not_arrived", ranges(call.not_arrived)},
                       {"since_unix_seconds", static_cast<double>(call.since_unix_ns) / 1e9},
                       {"call_site", report::call_site_text(call.call_site)}});
  Json ranks = Json::array();
  for (const LiveRank& rank : view.ranks)
    ranks.push_back(
        {{"rank", rank.rank},
         {"node", rank.node},
         {"ended", rank.has_ended},
         {"inside", rank.inside.empty() ? Json(nullptr) : Json(rank.inside)},
         {"since_seconds", rank.since_ns / 1e9},
         {"call_site", report::call_site_text(rank.call_site)},
         {"computing_share", rank.computing_share},
         {"collectives_share", rank.collectives_share},
         {"elsewhere_share", rank.elsewhere_share},
         {"caused_seconds", rank.caused_ns / 1e9},
         {"relative_score", score(rank.relative_score)},
         {"individual_score", score(rank.individual_score)},
         {"changed_unix_seconds",
          rank.changed_unix_ns == 0 ? Json(nullptr) : Json(static_cast<double>(rank.changed_unix_ns) / 1e9)},
         {"change_ratio", rank.change_ratio},
         {"calls", rank.all_calls}});
  return {{"unix_seconds", static_cast<double>(view.unix_ns) / 1e9},
          {"interval_seconds", view.interval_ns / 1e9},
          {"program", view.program},
          {"ranks_of_job", view.ranks_of_job},
          {"nodes", view.nodes},
          {"ended", view.has_ended},
          {"verdict", live_verdict(view)},
          {"pending", pending},
          {"stacks", to_json(stacks)},
          {"ranks", ranks}};
}

// ---- Prometheus' text format

std::string label(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

void write_prometheus(std::ostream& out, const LiveView& view, const std::string& folder) {
  const std::string job = label(folder);
  struct Metric {
    const char* name;
    const char* type;
    const char* help;
    double (*value)(const LiveRank&);
  };
  static constexpr Metric metrics[] = {
      {"papaya_rank_computing_ratio", "gauge", "Share of the last interval outside MPI",
       [](const LiveRank& rank) { return rank.computing_share; }},
      {"papaya_rank_collectives_ratio", "gauge", "Share of the last interval in blocking collectives",
       [](const LiveRank& rank) { return rank.collectives_share; }},
      {"papaya_rank_other_mpi_ratio", "gauge", "Share of the last interval in MPI's other functions",
       [](const LiveRank& rank) { return rank.elsewhere_share; }},
      {"papaya_rank_collective_calls_total", "counter", "Collective calls since MPI_Init",
       [](const LiveRank& rank) { return static_cast<double>(rank.all_calls); }},
      {"papaya_rank_caused_waiting_seconds_total", "counter",
       "Time the other ranks of its node waited for the rank in collectives since MPI_Init",
       [](const LiveRank& rank) { return rank.all_caused_ns / 1e9; }},
      {"papaya_rank_relative_score", "gauge", "Median computing time of the ranks over the rank's own, at most 1",
       [](const LiveRank& rank) { return rank.relative_score; }},
      {"papaya_rank_individual_score", "gauge", "The rank's least computing time for a call over today's, at most 1",
       [](const LiveRank& rank) { return rank.individual_score; }},
      {"papaya_rank_speed_change_timestamp_seconds", "gauge",
       "When the rank's computing time against the median's last changed",
       [](const LiveRank& rank) {
         return rank.changed_unix_ns == 0 ? -1 : static_cast<double>(rank.changed_unix_ns / 1'000'000) / 1e3;
       }},
      {"papaya_rank_speed_change_ratio", "gauge",
       "The rank's computing time against the median's, over what it was before",
       [](const LiveRank& rank) { return rank.changed_unix_ns == 0 ? -1 : rank.change_ratio; }},
  };
  out << "# HELP papaya_job_running 1 until all ranks have come to MPI_Finalize\n# TYPE papaya_job_running gauge\n"
      << fmt::format("papaya_job_running{{job=\"{}\",program=\"{}\"}} {}\n", job, label(view.program),
                     view.has_ended ? 0 : 1);
  for (const Metric& metric : metrics) {
    out << fmt::format("# HELP {} {}\n# TYPE {} {}\n", metric.name, metric.help, metric.name, metric.type);
    for (const LiveRank& rank : view.ranks) {
      const double value = metric.value(rank);
      if (value < 0) continue;  // not known
      out << fmt::format("{}{{job=\"{}\",rank=\"{}\",node=\"{}\"}} {}\n", metric.name, job, rank.rank, rank.node,
                         value);
    }
  }
  out << "# HELP papaya_longest_pending_seconds How long ranks have waited in a call that others have not come to\n"
         "# TYPE papaya_longest_pending_seconds gauge\n";
  double longest_s = 0;
  for (const report::PendingCall& call : view.pending)
    if (!call.not_arrived.empty())
      longest_s = std::max(longest_s, static_cast<double>(view.unix_ns - call.since_unix_ns) / 1e9);
  out << fmt::format("papaya_longest_pending_seconds{{job=\"{}\"}} {}\n", job, longest_s);
}

// ---- the command

bool print(const Options& options, const LiveView& view, const report::StackGroups& stacks) {
  if (!options.prometheus.empty())
    return write_output("papaya top", options.prometheus,
                        [&](std::ostream& out) { write_prometheus(out, view, options.folder); });
  if (options.json)
    std::cout << to_json(view, stacks).dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
  else
    std::cout << (isatty(STDOUT_FILENO) == 1 ? "\033[H\033[J" : "") << to_text(view, stacks, options);
  std::cout.flush();
  return static_cast<bool>(std::cout);
}

int top(Options options) {
  const double interval_s = options.interval_s > 0       ? options.interval_s
                            : options.prometheus.empty() ? usual_interval_s
                                                         : prometheus_interval_s;
  report::Watch watch;
  for (std::uint64_t looks = 1;; ++looks) {
    report::Run run;
    int exit_code = exit_fine;
    if (!load_recorded_run("papaya top", options.folder, run, exit_code, report::Extent::latest)) return exit_code;
    LiveView view = watch.look(run, unix_now_ns());
    if (looks == 1 && run.files.empty()) return exit_code_of("papaya top", run);
    CallSites sites;
    for (LiveRank& rank : view.ranks) sites.push_back(&rank.call_site);
    for (report::PendingCall& call : view.pending) sites.push_back(&call.call_site);
    symbolise(sites);
    if (!print(options, view,
               view.has_ended   ? report::StackGroups()
               : options.stacks ? asked_stacks(run)
                                : left_stacks(run, view)))
      return exit_failed;
    if (view.has_ended || looks == options.count) return exit_fine;
    std::this_thread::sleep_for(std::chrono::duration<double>(interval_s));
    if (!options.json && options.prometheus.empty() && isatty(STDOUT_FILENO) != 1) std::cout << "\n";
  }
}

}  // namespace

void add_top(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand("top", "Show a running job: who is late now, since when and where");
  auto options = std::make_shared<Options>();
  command->add_option("folder", options->folder, "Folder of the run (default: the newest papaya.*.*.* folder here)");
  command->add_option("-d,--interval", options->interval_s, "Seconds between two looks (2; with --prometheus 30)")
      ->check(CLI::Range(0.05, 86400.0));
  command->add_option("-n,--count", options->count, "Look so many times (default: until the job ends)")
      ->check(at_least_one());
  command->add_option("--rows", options->rows, "Most ranks to list (20)")->check(at_least_one());
  CLI::Option* const json = command->add_flag("--json", options->json, "Print a line of JSON for each look");
  CLI::Option* const stacks = command->add_flag("--stacks", options->stacks,
                                                "Ask all ranks at each look for their call stacks, and show these");
  command
      ->add_option("--prometheus", options->prometheus,
                   "Write to this file instead, for the textfile collector of Prometheus' node_exporter")
      ->excludes(json)
      ->excludes(stacks);
  command->footer(
      "Exit codes: 0 fine; 1 nothing usable; 2 usage, no such folder; 4 recorded by another version of papaya.");
  command->callback([options, &exit_code] { exit_code = top(*options); });
}

}  // namespace papaya
