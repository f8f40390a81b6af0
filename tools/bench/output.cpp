#include "tools/bench/output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/mpi_name.hpp"
#include "tools/bench/weak_output.hpp"

namespace papaya::bench {

namespace {

constexpr double least_progress_s = 2;

std::string collective_of(const Row& row) {
  return row.weak ? row.weak->collective : name_of(Operation{row.collective, row.form});
}

std::string gigabytes(double bytes_per_second) {
  return fmt::format("{:.3g}", bytes_per_second * 1e-9);
}

std::string factor(double value) {
  return value < 0.0995  ? fmt::format("{:.3f}", value)
         : value < 9.995 ? fmt::format("{:.2f}", value)
         : value < 99.95 ? fmt::format("{:.1f}", value)
                         : fmt::format("{:.0f}", value);
}

std::string ratio_of(const std::optional<double>& value) {
  return !value ? "-" : *value < 0.001 ? "<.001" : factor(*value);
}

// Names can be longer than their columns; the head of a selection is what tells it from others.
std::string cut(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 2) + "..";
}

std::string what_is_shown(const Result& result, Collective collective) {
  const bool mean = aggregation_of(collective) == Aggregation::mean;
  const char* const ranks = mean ? "mean over the ranks" : "slowest rank";
  if (result.mode == "tight") return fmt::format("time per call back to back, {}, of each block", ranks);
  return fmt::format("excess over the earliest legal exit, {}, of each call", ranks);
}

using Json = nlohmann::ordered_json;

Json to_json(const Summary& summary) {
  return {
      {"mean", summary.mean}, {"p50", summary.p50}, {"p99", summary.p99}, {"max", summary.max}, {"min", summary.min}};
}

Json to_json(const std::optional<Interval>& interval) {
  return interval ? Json{interval->low, interval->high} : Json(nullptr);
}

Json to_json(const OverlapFigures& overlap) {
  return {{"percent", overlap.percent},
          {"percent_interval", to_json(overlap.interval)},
          {"pure_us", to_json(overlap.pure_us)},
          {"compute_us", to_json(overlap.compute_us)},
          {"total_us", to_json(overlap.total_us)}};
}

// One line each: a number to a line would make most of the file.
std::string line_of(const Turns& turns) {
  std::string text;
  for (const std::vector<double>& turn : turns) {
    text += text.empty() ? "[[" : ", [";
    for (std::size_t i = 0; i < turn.size(); ++i) text += fmt::format("{}{:.6g}", i == 0 ? "" : ", ", turn[i]);
    text += "]";
  }
  return text.empty() ? "[]" : text + "]";
}

template <class T>
Json to_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json rates_json(const Machine& machine) {
  Json rates = Json::array();
  for (const CopyRate& rate : machine.copy_rates)
    rates.push_back({{"bytes", rate.bytes}, {"one_core", rate.one_core}, {"all_cores", rate.all_cores}});
  return rates;
}

double now_s() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Does somebody look at standard error? A launcher gives its ranks pipes, so its own counts: the nearest
// process above whose name is that of a launcher.
bool is_watched() {
  if (isatty(STDERR_FILENO) != 0) return true;
  long process = getppid();
  for (int depth = 0; depth < 6 && process > 1; ++depth) {
    std::ifstream file(fmt::format("/proc/{}/stat", process));
    std::string text;
    std::getline(file, text);
    const std::size_t open = text.find('('), close = text.rfind(')');
    if (open == text.npos || close == text.npos || close + 4 > text.size()) return false;
    const std::string name = text.substr(open + 1, close - open - 1);
    if (name.find("mpirun") == 0 || name.find("mpiexec") == 0 || name.find("orterun") == 0 ||
        name.find("prterun") == 0) {
      char target[64] = "";
      const ssize_t length = readlink(fmt::format("/proc/{}/fd/2", process).c_str(), target, sizeof target - 1);
      return length > 0 && std::string(target, static_cast<std::size_t>(length)).find("/dev/pts/") == 0;
    }
    process = std::strtol(text.c_str() + close + 4, nullptr, 10);
  }
  return false;
}

}  // namespace

std::string short_bytes(std::size_t bytes) {
  if (bytes >= (1u << 20) && bytes % (1u << 20) == 0) return fmt::format("{}M", bytes >> 20);
  if (bytes >= 1024 && bytes % 1024 == 0) return fmt::format("{}K", bytes >> 10);
  return fmt::format("{}", bytes);
}

std::string short_number(double value) {
  if (value == 0) return "0";
  const int whole_digits = static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;
  return fmt::format("{:.{}f}", value, std::clamp(3 - whole_digits, 0, 4));
}

std::string header_text(const Result& result) {
  std::string text =
      fmt::format("{}, {} rank{} on {} node{}, {} core{}", result.mpi, result.ranks, result.ranks == 1 ? "" : "s",
                  result.nodes, result.nodes == 1 ? "" : "s", result.cores, result.cores == 1 ? "" : "s");
  if (result.mode == "tight")
    text += "\ncalls back to back\n";
  else if (result.mode == "balanced")
    text += "\na barrier before each call\n";
  else if (result.mode == "free")
    text += "\n" + free_text(result) + "\n";
  else if (result.mif)
    text += fmt::format("\narrivals {} within {:g} message times\n", result.pattern, *result.mif);
  else
    text += fmt::format("\narrivals {} within {} us\n", result.pattern, short_number(result.skew_us));
  const Machine& machine = result.machine;
  if (machine.line_us > 0)
    text += fmt::format("L {:.0f} ns from core to core for a cache line, s {:.1f} ns for each further one\n",
                        machine.line_us * 1e3, machine.further_line_us * 1e3);
  if (!machine.copy_rates.empty()) {
    std::string sizes = "copying GB/s, bytes ", one = "  b, one core       ", all = "  B, all cores      ";
    for (const CopyRate& rate : machine.copy_rates) {
      sizes += fmt::format("{:>8}", short_bytes(rate.bytes));
      one += fmt::format("{:>8}", gigabytes(rate.one_core));
      all += fmt::format("{:>8}", gigabytes(rate.all_cores));
    }
    text += sizes + "\n" + one + "\n" + all + "\n";
  }
  if (result.nodes > 1)
    text += fmt::format("clocks of the nodes agree to {} us; the limits are for one node and left out\n",
                        short_number(result.clock_error_us));
  else if (result.machine.is_measured() && result.ranks > result.cores)
    text += "more ranks than cores: nobody reaches the limit, which is for ranks that have a core each\n";
  return text;
}

std::string table_head(const Result& result, const Operation& operation) {
  return fmt::format("\n{}: {}, in us\n\n{:>6}  {:<18}{:>8}{:>6}{:>8}{:>8}{:>8}{:>8}{:>7}  {:>5} {:<7} {}\n",
                     mpi_name(operation.collective, operation.form), what_is_shown(result, operation.collective),
                     "bytes", "algorithm", "median", "+-%", "min", "mean", "max", "x limit", "stop", "ratio", "native",
                     "95 % interval");
}

std::string table_row(const Row& row, int launches) {
  const Summary& figures = row.excess_us;
  const bool has_interval = row.interval_us && figures.p50 > 0;
  const double half = has_interval ? (row.interval_us->high - row.interval_us->low) / 2 / figures.p50 : 0;
  std::string text =
      fmt::format("{:>6}  {:<18}{:>8}{:>6}{:>8}{:>8}{:>8}{:>8}{:>7}", short_bytes(row.bytes), cut(row.algorithm, 18),
                  is_wrong(row) ? "WRONG" : short_number(figures.p50), has_interval ? factor(half * 100) : "-",
                  short_number(figures.min), short_number(figures.mean), short_number(figures.max),
                  row.limit_us && *row.limit_us > 0 ? factor(figures.p50 / *row.limit_us) : "-",
                  launches > 1 ? fmt::format("{} runs", row.launches_us.size()) : std::string(name_of(row.stop)));
  if (row.judgement)
    text += fmt::format("  {:>5} {:<7} {}", ratio_of(row.ratio_to_native), name_of(row.judgement->outcome),
                        row.judgement->reason);
  text += "\n";
  if (const std::optional<OverlapFigures>& overlap = row.overlap) {
    text += fmt::format("{:>8}overlap {:.0f} %", "", overlap->percent);
    if (overlap->interval) text += fmt::format(" ({:.0f} to {:.0f})", overlap->interval->low, overlap->interval->high);
    text += fmt::format(": alone {}, computing {}, both {}\n", short_number(overlap->pure_us.p50),
                        short_number(overlap->compute_us.p50), short_number(overlap->total_us.p50));
  }
  return text;
}

std::string remarks_text(const Result& result) {
  std::string text;
  double missed = 0;
  for (const Row& row : result.rows) {
    const std::string name = fmt::format("{} {} {}", collective_of(row), short_bytes(row.bytes), row.algorithm);
    if (row.wrong_results != 0) text += fmt::format("WRONG: {}: {} results were wrong.\n", name, row.wrong_results);
    if (row.early_exits != 0)
      text += fmt::format("WRONG: {}: in {} of {} calls a rank left before all had come.\n", name, row.early_exits,
                          row.iterations);
    if (row.replaced && row.algorithm != "auto" && *row.replaced < 1)
      text += fmt::format("{}: papaya ran only {:.0f} % of the calls, MPI the others.\n", name, *row.replaced * 100);
    missed = std::max(missed, row.missed_arrivals);
  }
  if (result.others_share > 0.05)
    text += fmt::format(
        "Other processes took {:.0f} % of the cores' time meanwhile; an idle machine gives better numbers.\n",
        result.others_share * 100);
  if (missed > 0.1)
    text +=
        fmt::format("Up to {:.0f} % of a row's arrivals missed their deadline; the times are from the real arrivals.\n",
                    missed * 100);
  if (!result.rows.empty())
    text += fmt::format(
        "+-%: half of the median's 95 % interval. stop: narrow, at most {:g} %; time or rounds, no more of these.\n"
        "SAME: within {:g} % of native; FASTER, SLOWER: surely so; UNCLEAR: the interval has room for both "
        "(--seconds).\n",
        result.precision, result.margin);
  return text.empty() ? text : "\n" + text;
}

std::string json_text(const Result& result) {
  Json rows = Json::array();
  std::vector<std::string> samples;
  for (const Row& row : result.rows) {
    Json out = {{"collective", collective_of(row)},
                {"algorithm", row.algorithm},
                {"bytes", row.bytes},
                {"iterations", row.iterations},
                {"excess_us", to_json(row.excess_us)},
                {"inside_us", to_json(row.inside_us)},
                {"ratio_to_native", to_json(row.ratio_to_native)},
                {"limit_us", to_json(row.limit_us)},
                {"aggregation", aggregation_of(row) == Aggregation::mean ? "mean" : "max"},
                {"excess_max_us", to_json(row.excess_max_us)},
                {"excess_mean_us", to_json(row.excess_mean_us)}};
    if (row.root_inside_us) out["root_inside_us"] = to_json(*row.root_inside_us);
    out["ratio_lowest"] = to_json(row.ratio_lowest);
    out["ratio_highest"] = to_json(row.ratio_highest);
    out["interval_us"] = to_json(row.interval_us);
    out["ratio_interval"] = to_json(row.ratio_interval);
    out["word"] = row.judgement ? Json(report::name_of(row.judgement->outcome)) : Json(nullptr);
    out["reason"] = row.judgement ? Json(row.judgement->reason) : Json(nullptr);
    out["stop"] = row.stop == Stop::none ? Json(nullptr) : Json(name_of(row.stop));
    if (row.overlap) out["overlap"] = to_json(*row.overlap);
    if (result.launches > 1) out["launches_us"] = row.launches_us;
    out["values"] = values_of(row.values_us).size();
    out["samples_us"] = fmt::format("samples {}", samples.size());
    samples.push_back(line_of(thinned(row.values_us, result.samples)));
    out["imbalance_us"] = row.imbalance_us;
    out["skew_us"] = row.skew_us;
    out["alpha_us"] = row.alpha_us;
    out["missed_arrivals"] = row.missed_arrivals;
    out["checked_results"] = row.checked_results;
    out["wrong_results"] = row.wrong_results;
    out["early_exits"] = row.early_exits;
    out["replaced"] = to_json(row.replaced);
    if (row.weak) add_weak_fields(*row.weak, out);
    rows.push_back(std::move(out));
  }
  Json out = {{"ranks", result.ranks},
              {"nodes", result.nodes},
              {"cores", result.cores},
              {"mpi", result.mpi},
              {"pattern", result.pattern},
              {"skew_us", result.skew_us},
              {"mif", to_json(result.mif)},
              {"mode", result.mode},
              {"seed", result.seed},
              {"rounds", result.rounds},
              {"launches", result.launches},
              {"precision", result.precision},
              {"margin", result.margin},
              {"root", result.root},
              {"clock_error_us", result.clock_error_us},
              {"others_share", result.others_share},
              {"line_us", result.machine.line_us},
              {"further_line_us", result.machine.further_line_us},
              {"copy_rates", rates_json(result.machine)}};
  if (result.compute_us) out["compute_us"] = *result.compute_us;
  out["rows"] = std::move(rows);
  std::string text = out.dump(2) + "\n";
  std::size_t from = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::string place = fmt::format("\"samples {}\"", i);
    from = text.find(place, from);
    text.replace(from, place.size(), samples[i]);
  }
  return text;
}

std::string csv_text(const Result& result) {
  std::string text =
      "collective,algorithm,bytes,iterations,excess_mean_us,excess_p50_us,excess_p99_us,excess_max_us,inside_"
      "mean_us,"
      "inside_p50_us,inside_p99_us,inside_max_us,ratio_to_native,limit_us,skew_us,wrong_results,"
      "excess_min_us,interval_low_us,interval_high_us,ratio_low,ratio_high,word,stop";
  const bool is_weak = !result.rows.empty() && result.rows.front().weak;
  text += is_weak ? weak_csv_columns() + "\n" : "\n";
  const auto optional = [](const std::optional<double>& value) { return value ? fmt::format("{:.6g}", *value) : ""; };
  for (const Row& row : result.rows) {
    // A selection with several parameters has commas.
    const std::string name = row.algorithm.find(',') == std::string::npos ? row.algorithm : "\"" + row.algorithm + "\"";
    text += fmt::format("{},{},{},{}", collective_of(row), name, row.bytes, row.iterations);
    for (const Summary& summary : {row.excess_us, row.inside_us})
      text += fmt::format(",{:.6g},{:.6g},{:.6g},{:.6g}", summary.mean, summary.p50, summary.p99, summary.max);
    text += fmt::format(",{},{},{:.6g},{}", optional(row.ratio_to_native), optional(row.limit_us), row.skew_us,
                        row.wrong_results + row.early_exits);
    const auto ends = [](const std::optional<Interval>& of) {
      return of ? fmt::format("{:.6g},{:.6g}", of->low, of->high) : std::string(",");
    };
    text += fmt::format(",{:.6g},{},{},{},{}", row.excess_us.min, ends(row.interval_us), ends(row.ratio_interval),
                        row.judgement ? report::name_of(row.judgement->outcome) : "", name_of(row.stop));
    text += row.weak ? weak_csv(*row.weak) + "\n" : "\n";
  }
  return text;
}

bool write_file(const std::string& name, const std::string& text) {
  if (name.empty()) return true;
  errno = 0;
  std::ofstream file(name, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) std::fprintf(stderr, "papaya bench: cannot write %s: %s.\n", name.c_str(), std::strerror(errno));
  return static_cast<bool>(file);
}

bool write_files(const Options& options, const Result& result) {
  return write_file(options.json, json_text(result)) && write_file(options.csv, csv_text(result)) &&
         write_file(options.plot, options.plot.empty() ? "" : plot_svg(result));
}

Progress::Progress(bool wanted) : wanted_(wanted && is_watched()), begin_s_(now_s()) {}
Progress::~Progress() {
  clear();
}

void Progress::show(double share, const std::string& what) {
  if (!wanted_) return;
  const double now = now_s(), taken = now - begin_s_;
  if (taken < least_progress_s || now - shown_s_ < 0.2) return;
  shown_s_ = now;
  const std::string left = share > 0.02 ? fmt::format(", {:.0f} s left", taken / share * (1 - share)) : "";
  const auto filled = static_cast<std::size_t>(share * 30);
  const std::string line = fmt::format("[{}{}] {:3.0f} %{}  {}", std::string(filled, '#'),
                                       std::string(30 - filled, '.'), share * 100, left, what);
  std::fprintf(stderr, "\r%-78.78s", line.c_str());
  std::fflush(stderr);
  visible_ = true;
}

void Progress::clear() {
  if (visible_) std::fprintf(stderr, "\r%78s\r", "");
  visible_ = false;
}

}  // namespace papaya::bench
