// papaya trace: every recorded call, for other programs: a timeline (Chrome's trace events for Perfetto, OTF2 for
// Vampir) or a table.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "base/mpi_name.hpp"
#include "base/settings.hpp"
#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/communicator_names.hpp"
#include "profiler/analysis/event_stream.hpp"
#include "profiler/analysis/horovod.hpp"
#include "profiler/read/event_reader.hpp"
#include "profiler/read/units.hpp"
#include "profiler/record/waits.hpp"
#include "tools/command.hpp"
#include "tools/otf2.hpp"
#include "tools/recorded_run.hpp"
#include "tools/symbols.hpp"
#include "tools/weak_arguments.hpp"

namespace papaya {
namespace {

constexpr std::size_t events_per_piece = 4096;

struct Options {
  std::string folder;
  std::string output;
  bool chrome = false;
  bool csv = false;
  bool otf2 = false;
  double from_s = -INFINITY;
  double to_s = INFINITY;
  std::string ranks = "all";
};

// The calls that are wanted: those of these ranks that are under way at some time of these.
struct Extract {
  double from_ns = -INFINITY;
  double to_ns = INFINITY;
  RankList ranks;

  bool contains(const report::RankFile& file) const { return ranks.contains(file.header.rank); }
  // `exit_ns`: NAN if it never left.
  bool contains(double arrival_ns, double exit_ns) const { return arrival_ns <= to_ns && !(exit_ns < from_ns); }
};

class Trace {
 public:
  Trace(const report::Run& run, const Extract& extract)
      : run_(run), extract_(extract), clocks_(run), communicators_(report::communicator_names(run)) {
    std::vector<std::vector<std::vector<report::NamedFrame>>> sites(run.files.size());
    CallSites all;
    for (std::size_t f = 0; f < run.files.size(); ++f) {
      for (const std::vector<report::Frame>& frames : *run.files[f].call_sites) {
        std::vector<report::NamedFrame>& site = sites[f].emplace_back();
        for (const report::Frame& frame : frames) site.push_back(report::named(frame));
      }
      for (std::vector<report::NamedFrame>& site : sites[f]) all.push_back(&site);
    }
    for (const std::string& note : symbolise(all)) std::cerr << "papaya trace: " << note << "\n";
    for (const auto& of_file : sites) {
      std::vector<std::string>& names = site_names_.emplace_back();
      for (const std::vector<report::NamedFrame>& site : of_file) names.push_back(report::call_site_text(site));
    }
  }

  void write_csv(std::ostream& out) const {
    out << "rank,node,thread,communicator,call,collective,bytes,root,arrival_us,exit_us,late_us,last,algorithm,reason,"
           "site,clock,oldest,own,ranks,share,waited_us,ended_site,phase\n";
    for_each([&](const report::RankFile& file, const trace::Event& event, const report::InCall& its,
                 const std::string& site, double arrival_ns, double exit_ns) {
      out << fmt::format("{},{},{},{},{},{},{},{},{:.3f},{},{},{},{},{},{},,,,,,,,{}\n", file.header.rank,
                         file.header.node, event.thread, quoted(communicator_of(event)), number_of(event),
                         call_name(event), event.bytes, event.root >= 0 ? fmt::format("{}", event.root) : "",
                         arrival_ns / 1e3, std::isnan(exit_ns) ? "" : fmt::format("{:.3f}", exit_ns / 1e3),
                         its.is_matched ? fmt::format("{:.3f}", its.late_ns / 1e3) : "",
                         its.is_matched ? (its.is_last ? "1" : "0") : "", quoted(algorithm_of(file, event)),
                         quoted(reason_of(file, event)), quoted(site), quoted(phase_of(file, event.phase)));
    });
    for_each_weak([&](std::size_t f, const trace::WeakEvent& event, const trace::WeakRow& row, double arrival_ns,
                      double exit_ns) {
      const report::RankFile& file = run_.files[f];
      const bool has_left = !std::isnan(exit_ns);
      out << fmt::format("{},{},{},{},,{},{},{},{:.3f},{},,,{},,{},{},{},{},{}\n", file.header.rank, file.header.node,
                         event.thread, quoted(report::weak_communicator(row)), report::clean_text(row.collective),
                         event.bytes, row.root >= 0 ? fmt::format("{}", row.root) : "", arrival_ns / 1e3,
                         has_left ? fmt::format("{:.3f}", exit_ns / 1e3) : "",
                         quoted(report::clean_text(row.algorithm)), quoted(site_name(f, event.call_site)), event.clock,
                         has_left ? fmt::format("{},{},{},{:g},{:.3f}", event.oldest, event.own, event.ranks,
                                                event.share, static_cast<double>(event.waited_ns) / 1e3)
                                  : ",,,,",
                         quoted(site_name(f, event.ended_site)), quoted(phase_of(file, event.phase)));
    });
  }

  // The array form, an event a line. https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
  void write_chrome(std::ostream& out) const {
    out << "[";
    const char* separator = "\n";
    const auto add = [&](const nlohmann::ordered_json& event) {
      out << separator << event.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
      separator = ",\n";
    };
    for (const report::RankFile& file : run_.files) {
      const int rank = file.header.rank;
      add({{"ph", "M"},
           {"name", "process_name"},
           {"pid", rank},
           {"tid", 0},
           {"args", {{"name", fmt::format("rank {} on {}", rank, report::clean_text(file.header.host))}}}});
      add({{"ph", "M"}, {"name", "process_sort_index"}, {"pid", rank}, {"tid", 0}, {"args", {{"sort_index", rank}}}});
    }
    const report::Horovod horovod = report::find_horovod(run_);
    for (std::size_t f = 0; f < run_.files.size(); ++f)
      for (const std::uint32_t thread : horovod.threads[f])
        add({{"ph", "M"},
             {"name", "thread_name"},
             {"pid", run_.files[f].header.rank},
             {"tid", thread},
             {"args", {{"name", "Horovod background thread"}}}});
    for_each([&](const report::RankFile& file, const trace::Event& event, const report::InCall& its,
                 const std::string& site, double arrival_ns, double exit_ns) {
      const int rank = file.header.rank;
      const double end_ns = std::isnan(exit_ns) ? std::max(arrival_ns, end_of_record_ns()) : exit_ns;
      nlohmann::ordered_json arguments = {{"communicator", communicator_of(event)}, {"bytes", event.bytes}};
      if (event.call != trace::no_call) arguments["call"] = trace::number_of(event);
      if (static_cast<Form>(event.form) == Form::started && event.call != trace::no_call)
        arguments["starts_before"] = trace::starts_before(event.call);
      if (event.root >= 0) arguments["root"] = event.root;
      arguments["algorithm"] = algorithm_of(file, event);
      if (const std::string reason = reason_of(file, event); !reason.empty()) arguments["why native"] = reason;
      if (!site.empty()) arguments["from"] = site;
      if (const std::string phase = phase_of(file, event.phase); !phase.empty()) arguments["phase"] = phase;
      if (std::isnan(exit_ns)) arguments["never left"] = true;
      add({{"ph", "X"},
           {"name", call_name(event)},
           {"cat", its.is_last ? "last" : "collective"},
           {"pid", rank},
           {"tid", event.thread},
           {"ts", arrival_ns / 1e3},
           {"dur", (end_ns - arrival_ns) / 1e3},
           {"args", std::move(arguments)}});
      if (its.waiting_ns > report::tie_ns)
        add({{"ph", "X"},
             {"name", fmt::format("waits for rank {}", its.awaited)},
             {"cat", "waiting"},
             {"pid", rank},
             {"tid", event.thread},
             {"ts", arrival_ns / 1e3},
             {"dur", std::min(its.waiting_ns, end_ns - arrival_ns) / 1e3}});
      if (its.is_last)
        add({{"ph", "i"},
             {"s", "p"},
             {"name", "last, by " + report::time_text(its.late_ns)},
             {"cat", "last"},
             {"pid", rank},
             {"tid", event.thread},
             {"ts", arrival_ns / 1e3}});
    });
    write_weak_slices(add);
    out << "\n]\n";
  }

  bool write_otf2(const std::string& folder) const {
    const auto [recorded_begin_ns, recorded_end_ns] = recorded();
    const double begin_ns = std::isnan(recorded_begin_ns) ? 0 : recorded_begin_ns;
    const double end_ns = std::fmax(begin_ns, recorded_end_ns);
    const auto read_calls = [&](std::size_t first, std::size_t last, const otf2::OnCall& on_call) {
      for_each_of(first, last,
                  [&](std::size_t f, const trace::Event& event, const report::InCall& its, const std::string& site,
                      double arrival_ns, double exit_ns) {
                    on_call(f, {event, arrival_ns, exit_ns, its.is_matched ? its.late_ns : NAN, its.is_last, &site});
                  });
    };
    const auto weak_calls_of = [&](std::size_t f) {
      std::vector<otf2::WeakCall> calls;
      for_each_weak_of(f, [&](std::size_t, const trace::WeakEvent& event, const trace::WeakRow& row, double arrival_ns,
                              double exit_ns) {
        calls.push_back({&event, &row, arrival_ns, exit_ns, &site_name(f, event.call_site)});
      });
      return calls;
    };
    return otf2::write(
        {run_, begin_ns, end_ns, clocks_.base_unix_ns() + std::llround(begin_ns), read_calls, weak_calls_of}, folder);
  }

 private:
  template <class Add>
  void write_weak_slices(Add&& add) const {
    std::uint64_t split_calls = 0;
    for_each_weak([&](std::size_t f, const trace::WeakEvent& event, const trace::WeakRow& row, double arrival_ns,
                      double exit_ns) {
      const report::RankFile& file = run_.files[f];
      const bool has_left = !std::isnan(exit_ns);
      const double end_ns = has_left ? exit_ns : std::max(arrival_ns, end_of_record_ns());
      const nlohmann::ordered_json arguments = weak_arguments(
          row, event, {site_name(f, event.call_site), site_name(f, event.ended_site), phase_of(file, event.phase)});
      nlohmann::ordered_json slice = {{"name", report::clean_text(row.collective)},
                                      {"cat", "weak"},
                                      {"pid", file.header.rank},
                                      {"tid", event.thread}};
      const auto begin_as = [&](const char* phase) {
        slice["ph"] = phase;
        slice["ts"] = arrival_ns / 1e3;
        slice["args"] = arguments;
      };
      // It needs a track of its own then.
      if (is_in_parts(event, end_ns - arrival_ns)) {
        slice["id"] = split_calls++;
        begin_as("b");
        add(slice);
        slice.erase("args");
        slice["ph"] = "e";
        slice["ts"] = end_ns / 1e3;
      } else {
        begin_as("X");
        slice["dur"] = (end_ns - arrival_ns) / 1e3;
      }
      add(slice);
    });
  }
  template <class Body>
  void for_each(Body&& body) const {
    for_each_of(0, run_.files.size(),
                [&](std::size_t f, const trace::Event& event, const report::InCall& its, const std::string& site,
                    double arrival_ns, double exit_ns) { body(run_.files[f], event, its, site, arrival_ns, exit_ns); });
  }
  // Of the files from `first` on and before `last`.
  template <class Body>
  void for_each_of(std::size_t first, std::size_t last, Body&& body) const {
    report::read_events(run_, clocks_, [&](std::size_t f, const trace::Event& event, const report::InCall& its) {
      if (f < first || f >= last || !extract_.contains(run_.files[f])) return;
      const report::NodeClock& clock = clocks_.of_file(f);
      const double arrival_ns = clock.ns(event.arrival_ticks);
      const double exit_ns = event.exit_ticks == 0 ? NAN : clock.ns(event.exit_ticks);
      if (extract_.contains(arrival_ns, exit_ns))
        body(f, event, its, site_name(f, event.call_site), arrival_ns, exit_ns);
    });
  }
  template <class Body>
  void for_each_weak(Body&& body) const {
    for (std::size_t f = 0; f < run_.files.size(); ++f) for_each_weak_of(f, body);
  }
  template <class Body>
  void for_each_weak_of(std::size_t f, Body&& body) const {
    const report::RankFile& file = run_.files[f];
    const report::NodeClock& clock = clocks_.of_file(f);
    if (!extract_.contains(file)) return;
    for (const trace::WeakEvent& event : file.weak.events) {
      const double arrival_ns = clock.ns(event.arrival_ticks);
      const double exit_ns = event.exit_ticks == 0 ? NAN : clock.ns(event.exit_ticks);
      if (extract_.contains(arrival_ns, exit_ns)) body(f, event, file.weak.rows[event.row], arrival_ns, exit_ns);
    }
  }
  double end_of_record_ns() const {
    if (std::isnan(end_ns_)) end_ns_ = recorded().second;
    return end_ns_;
  }
  // From the first arrival to the last arrival or exit; NAN: there is none.
  std::pair<double, double> recorded() const {
    std::pair<double, double> time = {NAN, NAN};
    for_each_weak([&](std::size_t, const trace::WeakEvent&, const trace::WeakRow&, double arrival_ns, double exit_ns) {
      time.first = std::fmin(time.first, arrival_ns);
      time.second = std::fmax(time.second, std::fmax(arrival_ns, exit_ns));
    });
    for (std::size_t f = 0; f < run_.files.size(); ++f) {
      const report::NodeClock& clock = clocks_.of_file(f);
      report::EventReader reader(run_.files[f], events_per_piece, true);
      for (std::span<const trace::Event> piece = reader.next(); !piece.empty(); piece = reader.next())
        for (const trace::Event& event : piece) {
          time.first = std::fmin(time.first, clock.ns(event.arrival_ticks));
          time.second = std::fmax(time.second, clock.ns(std::max(event.arrival_ticks, event.exit_ticks)));
        }
    }
    return time;
  }

  const std::string& site_name(std::size_t f, std::uint32_t number) const {
    static const std::string none;
    return number == 0 ? none : site_names_[f][number - 1];
  }
  static std::string phase_of(const report::RankFile& file, std::uint16_t number) {
    return report::clean_text(file.texts->phase_names[number]);
  }
  static std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\n") == std::string::npos) return text;
    std::string result = "\"";
    for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
    return result + "\"";
  }
  static std::string call_name(const trace::Event& event) {
    return mpi_name(static_cast<Collective>(event.collective), static_cast<Form>(event.form));
  }
  // Of its communicator; with a colon how often what this call starts was started before.
  static std::string number_of(const trace::Event& event) {
    if (event.call == trace::no_call) return {};
    if (static_cast<Form>(event.form) != Form::started) return fmt::format("{}", event.call);
    return fmt::format("{}:{}", trace::number_of(event), trace::starts_before(event.call));
  }
  static std::string algorithm_of(const report::RankFile& file, const trace::Event& event) {
    return report::algorithm_name(file, event.algorithm);
  }
  static std::string reason_of(const report::RankFile& file, const trace::Event& event) {
    return report::clean_text(file.texts->reason_names[event.reason]);
  }
  // Its id if it did not fit the table.
  std::string communicator_of(const trace::Event& event) const {
    const auto name = communicators_.find(event.communicator);
    return name == communicators_.end() ? fmt::format("{:#x}", event.communicator) : name->second;
  }

  const report::Run& run_;
  const Extract& extract_;
  const report::Clocks clocks_;
  std::vector<std::vector<std::string>> site_names_;          // by file and number, from 1
  const std::map<std::uint64_t, std::string> communicators_;  // names by id
  mutable double end_ns_ = NAN;
};

// The archive is a folder: at once, too, and never over another.
bool write_archive(const Trace& trace, const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  const std::string written = fmt::format("{}.{}.tmp", folder, getpid());
  bool good = trace.write_otf2(written);
  if (good) {
    fs::rename(written, folder, error);
    good = !error;
  }
  if (good) return true;
  fs::remove_all(written, error);
  std::cerr << "papaya trace: cannot write " << folder << ".\n";
  return false;
}

// Empty if the options can be followed.
std::string problem_with(const Options& options) {
  if (options.chrome + options.csv + options.otf2 != 1) return "choose one of --chrome, --csv and --otf2";
  if (!(options.from_s <= options.to_s)) return "--from is later than --to, so that no call lies between them";
  if (RankList ranks; !ranks.parse(options.ranks))
    return fmt::format("--ranks {} is no list of ranks, such as 0-3,8 or 0-1023:16", options.ranks);
  if (!options.otf2) return "";
  if (!otf2::is_there()) return "--otf2 needs a papaya that was built with OTF2 (libopen-trace-format2-dev)";
  if (options.output.empty()) return "--otf2 writes a folder: name it with -o FOLDER";
  if (std::error_code error; std::filesystem::exists(options.output, error))
    return options.output + " exists already: name another folder";
  return "";
}

int trace_run(Options options) {
  while (options.output.size() > 1 && options.output.ends_with('/')) options.output.pop_back();
  if (const std::string problem = problem_with(options); !problem.empty()) {
    std::cerr << "papaya trace: " << problem << ".\n";
    return exit_usage;
  }
  report::Run run;
  int exit_code = exit_fine;
  if (!load_recorded_run("papaya trace", options.folder, run, exit_code)) return exit_code;
  exit_code = exit_code_of("papaya trace", run);
  if (run.files.empty()) return exit_code;
  Extract extract{.from_ns = 1e9 * options.from_s, .to_ns = 1e9 * options.to_s};
  extract.ranks.parse(options.ranks);
  const Trace trace(run, extract);
  if (options.otf2) return write_archive(trace, options.output) ? exit_code : exit_failed;
  const bool good = write_output("papaya trace", options.output, [&](std::ostream& out) {
    options.csv ? trace.write_csv(out) : trace.write_chrome(out);
  });
  return good ? exit_code : exit_failed;
}

}  // namespace

void add_trace(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand("trace", "Turn the record of a run into a timeline or a table");
  auto options = std::make_shared<Options>();
  command->add_option("folder", options->folder, "Folder of the run (default: the newest papaya.*.*.* folder here)");
  command->add_flag(
      "--chrome", options->chrome,
      "A timeline in Chrome's trace event format, for https://ui.perfetto.dev: ranks as tracks, waiting and late "
      "arrivals marked");
  command->add_flag("--csv", options->csv, "A table, a line for each call of each rank");
  command->add_flag("--otf2", options->otf2,
                    "An OTF2 archive, for Vampir and otf2-print: ranks and their threads as locations, collectives "
                    "with communicator, root "
                    "and bytes; -o names its folder");
  command
      ->add_option("--from", options->from_s,
                   "Only calls that are under way at this time or later, in seconds of the record (arrival_us / 1e6)")
      ->option_text("SECONDS");
  command->add_option("--to", options->to_s, "Only calls that begin at this time or earlier")->option_text("SECONDS");
  command->add_option("--ranks", options->ranks, "Only calls of these ranks, such as 0-3,8 or 0-1023:16")
      ->option_text("LIST");
  command->add_option("-o,--output", options->output, "Write to this file instead of standard output");
  command->footer(
      "The record holds each rank's last 32,768 calls, with PAPAYA_PROFILE=trace all (up to PAPAYA_TRACE_LIMIT).\n"
      "Exit codes: 0 fine; 1 nothing usable; 2 usage, no such folder; 3 the data is partial; 4 recorded by another "
      "version of papaya.");
  command->callback([options, &exit_code] { exit_code = trace_run(*options); });
}

}  // namespace papaya
