#include "tools/bench/output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tools/bench/weak_output.hpp"

namespace papaya::bench {

namespace {

constexpr std::size_t columns = 100;
constexpr std::size_t shared_columns = 16;  // size and limit
constexpr std::size_t native_columns = 18;
constexpr double least_progress_s = 2;

std::string lower_name(Collective collective) {
  std::string name(name_of(collective));
  name[0] = static_cast<char>(name[0] - 'A' + 'a');
  return name;
}

std::string collective_of(const Row& row) {
  return row.weak ? row.weak->collective : lower_name(row.collective);
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

// Names can be longer than their columns; the head of a selection is what tells it from others.
std::string cut(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 2) + "..";
}

std::vector<std::string> algorithms_of(const Result& result, Collective collective) {
  std::vector<std::string> names;
  for (const Row& row : result.rows)
    if (row.collective == collective && std::find(names.begin(), names.end(), row.algorithm) == names.end())
      names.push_back(row.algorithm);
  return names;
}

const Row* find_row(const Result& result, Collective collective, std::size_t bytes, const std::string& algorithm) {
  for (const Row& row : result.rows)
    if (row.collective == collective && row.bytes == bytes && row.algorithm == algorithm) return &row;
  return nullptr;
}

std::vector<std::size_t> sizes_of(const Result& result, Collective collective) {
  std::vector<std::size_t> sizes;
  for (const Row& row : result.rows)
    if (row.collective == collective && (sizes.empty() || sizes.back() != row.bytes)) sizes.push_back(row.bytes);
  return sizes;
}

std::string what_is_shown(const Result& result, Collective collective) {
  const bool mean = aggregation_of(collective) == Aggregation::mean;
  const char* const ranks = mean ? "mean over the ranks" : "slowest rank";
  if (result.mode == "tight") return fmt::format("time per call back to back, {}, median of blocks", ranks);
  return fmt::format("excess over the earliest legal exit, {}, median of calls", ranks);
}

using Json = nlohmann::ordered_json;

Json to_json(const Summary& summary) {
  return {{"mean", summary.mean}, {"p50", summary.p50}, {"p99", summary.p99}, {"max", summary.max}};
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

std::string table_text(const Result& result, Collective collective) {
  std::vector<std::string> names = algorithms_of(result, collective);
  if (!names.empty() && names.front() == "native") names.erase(names.begin());
  std::string text = fmt::format("\nMPI_{}: {}, in us\n", name_of(collective), what_is_shown(result, collective));
  std::size_t begin = 0;
  do {
    const std::size_t width = 26;
    const std::size_t fit = (columns - shared_columns - native_columns) / width;
    const std::size_t end = std::min(names.size(), begin + fit);
    std::string heads = fmt::format("{:>8}{:>8}{:>18}", "", "", "native");
    std::string line = fmt::format("{:>8}{:>8}{:>10}{:>8}", "bytes", "limit", "p50", "x limit");
    for (std::size_t i = begin; i < end; ++i) {
      heads += fmt::format("{:>26}", cut(names[i], 24));
      line += fmt::format("{:>10}{:>8}{:>8}", "p50", "ratio", "x limit");
    }
    text += "\n" + heads + "\n" + line + "\n";
    for (const std::size_t bytes : sizes_of(result, collective)) {
      const Row* const native = find_row(result, collective, bytes, "native");
      if (native == nullptr) continue;
      const auto times_limit = [](const Row& row) {
        return row.limit_us && *row.limit_us > 0 ? factor(row.excess_us.p50 / *row.limit_us) : std::string("-");
      };
      line = fmt::format("{:>8}{:>8}{:>10}{:>8}", short_bytes(bytes),
                         native->limit_us ? short_number(*native->limit_us) : "-",
                         is_wrong(*native) ? "WRONG" : short_number(native->excess_us.p50), times_limit(*native));
      for (std::size_t i = begin; i < end; ++i) {
        const Row* const row = find_row(result, collective, bytes, names[i]);
        if (row == nullptr) {
          line += fmt::format("{:>10}{:>8}{:>8}", "-", "", "");
          continue;
        }
        // A ratio that rounds disagree on which side of 1 it lies says nothing.
        const bool unclear = row->ratio_lowest && *row->ratio_lowest < 1 && *row->ratio_highest > 1;
        const std::string ratio = row->ratio_to_native ? (unclear ? "~" : "") + factor(*row->ratio_to_native) : "-";
        line += fmt::format("{:>10}{:>8}{:>8}", is_wrong(*row) ? "WRONG" : short_number(row->excess_us.p50), ratio,
                            times_limit(*row));
      }
      text += line + "\n";
    }
    begin = end;
  } while (begin < names.size());
  return text;
}

std::string remarks_text(const Result& result) {
  std::string text;
  bool unclear = false;
  double missed = 0;
  for (const Row& row : result.rows) {
    const std::string name = fmt::format("{} {} {}", collective_of(row), short_bytes(row.bytes), row.algorithm);
    if (row.wrong_results != 0) text += fmt::format("WRONG: {}: {} results were wrong.\n", name, row.wrong_results);
    if (row.early_exits != 0)
      text += fmt::format("WRONG: {}: in {} of {} calls a rank left before all had come.\n", name, row.early_exits,
                          row.iterations);
    if (row.replaced && row.algorithm != "auto" && *row.replaced < 1)
      text += fmt::format("{}: papaya ran only {:.0f} % of the calls, MPI the others.\n", name, *row.replaced * 100);
    unclear |=
        !row.weak && row.algorithm != "native" && row.ratio_lowest && *row.ratio_lowest < 1 && *row.ratio_highest > 1;
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
  if (unclear) text += "~: faster than native in some rounds, slower in others.\n";
  return text.empty() ? text : "\n" + text;
}

std::string json_text(const Result& result) {
  Json rows = Json::array();
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
              {"root", result.root},
              {"clock_error_us", result.clock_error_us},
              {"others_share", result.others_share},
              {"line_us", result.machine.line_us},
              {"further_line_us", result.machine.further_line_us},
              {"copy_rates", rates_json(result.machine)}};
  if (result.compute_us) out["compute_us"] = *result.compute_us;
  out["rows"] = std::move(rows);
  return out.dump(2) + "\n";
}

std::string csv_text(const Result& result) {
  std::string text =
      "collective,algorithm,bytes,iterations,excess_mean_us,excess_p50_us,excess_p99_us,excess_max_us,inside_"
      "mean_us,"
      "inside_p50_us,inside_p99_us,inside_max_us,ratio_to_native,limit_us,skew_us,wrong_results";
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
    text += row.weak ? weak_csv(*row.weak) + "\n" : "\n";
  }
  return text;
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
