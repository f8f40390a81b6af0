#include "tools/tuned_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "tuning/native_algorithms.hpp"
#include "tuning/selection_text.hpp"

namespace papaya {

namespace {

using Json = nlohmann::ordered_json;
using tuning::ArrivalClass;
using tuning::Rule;

// An algorithm at one size under one pattern.
struct Cell {
  Json measured;  // as a tuning file has it
  double ratio = 0;
  std::array<double, 2> interval{};  // of it
  std::string outcome;
  double margin = 0;
  ArrivalClass arrivals{};
};

// Which pattern of arrivals a program has whose ranks arrive as in the benchmark's pattern; unknown: that is not said.
ArrivalClass arrivals_in(std::string_view pattern) {
  constexpr std::pair<std::string_view, ArrivalClass> known[] = {
      {"none", ArrivalClass::balanced},         {"random", ArrivalClass::random},
      {"exponential", ArrivalClass::random},    {"ascending", ArrivalClass::persistent},
      {"descending", ArrivalClass::persistent}, {"first-late", ArrivalClass::persistent},
      {"last-late", ArrivalClass::persistent},  {"straggler", ArrivalClass::persistent}};
  for (const auto& [name, arrivals] : known)
    if (name == pattern) return arrivals;
  return ArrivalClass::unknown;
}

struct Group {  // of calls on like communicators
  Collective collective;
  int ranks;
  int nodes;
  bool oversubscribed;
  const tuning::NativeLibrary* library;  // the MPI, where its own algorithms have names
  bool operator<(const Group& other) const {
    return std::tie(collective, ranks, nodes, oversubscribed) <
           std::tie(other.collective, other.ranks, other.nodes, other.oversubscribed);
  }
};

using ByAlgorithm = std::map<std::string, std::vector<Cell>>;
struct AtSize {
  std::map<ArrivalClass, std::size_t> measurements;  // of native, one under each pattern
  ByAlgorithm algorithms;
};
using Groups = std::map<Group, std::map<std::uint64_t, AtSize>>;

// Null where the benchmark could not say.
std::optional<Cell> cell_of(const Json& row, const Json& file, const Json& native) {
  const Json& interval = row.at("ratio_interval");
  if (interval.is_null() || row.at("ratio_to_native").is_null() || row.at("wrong_results").get<std::uint64_t>() != 0)
    return std::nullopt;
  Cell cell;
  cell.ratio = row.at("ratio_to_native").get<double>();
  cell.interval = interval.get<std::array<double, 2>>();
  cell.arrivals = arrivals_in(file.at("pattern").get<std::string>());
  cell.outcome = row.at("word").get<std::string>();
  cell.margin = file.at("margin").get<double>() / 100;
  cell.measured = {{"bytes", row.at("bytes")},
                   {"pattern", file.at("pattern")},
                   {"skew_us", row.at("skew_us")},
                   {"excess_us", row.at("excess_us").at("p50")},
                   {"native_excess_us", native.at("excess_us").at("p50")},
                   {"ratio", cell.ratio},
                   {"ratio_interval", interval},
                   {"outcome", cell.outcome},
                   {"turns", row.at("samples_us").size()}};
  return cell;
}

// The benchmark counts those of all nodes.
int cores_of_node(const Json& file) {
  return file.at("cores").get<int>() / std::max(1, file.at("nodes").get<int>());
}

// "Open MPI v4.1.4", "MPICH 4.0.2". Null: it is another one.
const tuning::NativeLibrary* library_of(std::string_view mpi) {
  const auto found = std::find_if(tuning::native_libraries.begin(), tuning::native_libraries.end(),
                                  [&](const tuning::NativeLibrary& one) { return mpi.starts_with(one.name); });
  return found == tuning::native_libraries.end() ? nullptr : &*found;
}

// Of one file.
void gather(const Json& file, const std::string& name, Groups& groups, std::vector<std::string>& notes) {
  const int ranks = file.at("ranks").get<int>();
  const int nodes = file.at("nodes").get<int>();
  const bool is_busy = (ranks + nodes - 1) / nodes > cores_of_node(file);
  const tuning::NativeLibrary* const library = library_of(file.at("mpi").get<std::string>());
  const Json* native = nullptr;  // the one before the rows that are compared to it
  for (const Json& row : file.at("rows")) {
    const auto called = row.at("collective").get<std::string>();
    const auto algorithm = row.at("algorithm").get<std::string>();
    Collective collective{};
    Variable variable{};
    if (!tuning::collective_of(called, collective) || !tuning::variable_of(collective, variable)) {
      std::string note = fmt::format("{}: {} is left out, which tuning files have no rules for", name, called);
      if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(std::move(note));
      continue;
    }
    AtSize& here = groups[{collective, ranks, nodes, is_busy, library}][row.at("bytes").get<std::uint64_t>()];
    if (algorithm == "native") {
      native = &row;
      ++here.measurements[arrivals_in(file.at("pattern").get<std::string>())];
      continue;
    }
    tuning::Parsed parsed;
    std::string problem;
    if (native == nullptr || algorithm == "auto") continue;  // that is one of the others
    if (tuning::is_native_variant(algorithm)) {
      if (library == nullptr) continue;
      const bool is_known =
          library->find(collective, algorithm.substr(tuning::native_variant_prefix.size())).has_value();
      if (std::optional<Cell> cell = is_known ? cell_of(row, file, *native) : std::nullopt)
        here.algorithms[algorithm].push_back(std::move(*cell));
      continue;
    }
    if (!tuning::parse(collective, Form::blocking, algorithm, parsed, problem) || parsed.rules.size() != 1) {
      notes.push_back(fmt::format("{}: {} is left out: {}", name, algorithm, problem));
      continue;
    }
    if (std::optional<Cell> cell = cell_of(row, file, *native)) here.algorithms[algorithm].push_back(std::move(*cell));
  }
}

struct Choice {
  std::string algorithm = "native";
  std::vector<Cell> cells;  // of the algorithm
  std::string best_other;   // native: what came next
};

double mean_ratio(const std::vector<Cell>& cells) {
  double sum = 0;
  for (const Cell& cell : cells) sum += std::log(cell.ratio);
  return std::exp(sum / static_cast<double>(cells.size()));
}

// What was measured where the ranks arrive like this; unknown: all.
AtSize part_of(const AtSize& size, ArrivalClass arrivals) {
  if (arrivals == ArrivalClass::unknown) return size;
  AtSize part;
  if (const auto found = size.measurements.find(arrivals); found != size.measurements.end())
    part.measurements.insert(*found);
  for (const auto& [name, cells] : size.algorithms)
    std::copy_if(cells.begin(), cells.end(), std::back_inserter(part.algorithms[name]),
                 [&](const Cell& cell) { return cell.arrivals == arrivals; });
  return part;
}

// Native, unless an algorithm is faster beyond noise under some pattern and under no other slower by more than what
// counts as the same. Among papaya's algorithms, or among MPI's own.
Choice choice_at(const AtSize& size, bool among_mpis) {
  Choice choice;
  std::size_t measurements = 0;
  for (const auto& [arrivals, count] : size.measurements) measurements += count;
  double least = 0;
  double least_other = 0;
  for (const auto& [name, cells] : size.algorithms) {
    if (cells.empty() || cells.size() != measurements || tuning::is_native_variant(name) != among_mpis) continue;
    const double mean = mean_ratio(cells);
    const bool is_faster =
        std::any_of(cells.begin(), cells.end(), [](const Cell& cell) { return cell.outcome == "FASTER"; });
    const bool may_be_slower =
        std::any_of(cells.begin(), cells.end(), [](const Cell& cell) { return cell.interval[1] > 1 + cell.margin; });
    if (is_faster && !may_be_slower && (choice.cells.empty() || mean < least)) {
      choice.algorithm = name;
      choice.cells = cells;
      least = mean;
    }
    if (!choice.best_other.empty() && mean >= least_other) continue;
    least_other = mean;
    const auto worst = std::max_element(cells.begin(), cells.end(), [](const Cell& one, const Cell& other) {
      return one.interval[1] < other.interval[1];
    });
    choice.best_other = fmt::format("next: {}, ratio {:.2f} ({:.2f} to {:.2f})", name, worst->ratio, worst->interval[0],
                                    worst->interval[1]);
  }
  return choice;
}

// What is better while ranks arrive like this than what serves whatever they do: faster than that beyond noise under
// each of the patterns.
std::optional<Choice> choice_under(const AtSize& size, ArrivalClass arrivals) {
  const Choice usual = choice_at(size, false);
  const AtSize part = part_of(size, arrivals);
  Choice choice = choice_at(part, false);
  if (choice.algorithm == "native" || choice.algorithm == usual.algorithm) return std::nullopt;
  if (usual.algorithm == "native") return choice;
  const std::vector<Cell>& others = part.algorithms.at(usual.algorithm);
  for (std::size_t i = 0; i < choice.cells.size(); ++i)
    if (choice.cells[i].interval[1] >= others[i].interval[0]) return std::nullopt;
  return choice;
}

Json rule_of(const Group& group, ArrivalClass arrivals, std::uint64_t lowest, std::uint64_t highest,
             const std::vector<Choice>& choices) {
  const std::string_view selection = choices.front().algorithm;
  const std::size_t colon = selection.find(':');
  Json rule = {{"collective", tuning::lower(name_of(group.collective))},
               {"ranks", group.ranks},
               {"nodes", group.nodes},
               {"oversubscribed", group.oversubscribed},
               {"bytes", {lowest, highest}},
               {"algorithm", selection.substr(0, colon)}};
  if (arrivals != ArrivalClass::unknown) rule["arrivals"] = tuning::name_of(arrivals);
  tuning::Parsed parsed;
  std::string problem;
  if (tuning::is_native_variant(selection))
    rule["parameters"][std::string(group.library->field)] = selection.substr(tuning::native_variant_prefix.size());
  else if (colon != selection.npos && tuning::parse(group.collective, Form::blocking, selection, parsed, problem)) {
    const Rule& chosen = parsed.rules.front();
    for (std::size_t i = 0; i < chosen.values.size(); ++i)
      rule["parameters"][std::string(chosen.algorithm->parameters[i].name)] = chosen.values[i];
  }
  if (selection == "native") {
    if (!choices.front().best_other.empty()) rule["comment"] = choices.front().best_other;
    return rule;
  }
  for (const Choice& choice : choices)
    for (const Cell& cell : choice.cells) rule["measured"].push_back(cell.measured);
  return rule;
}

std::string line_of(const Group& group, ArrivalClass arrivals, std::uint64_t lowest, std::uint64_t highest,
                    const std::vector<Choice>& choices) {
  std::string text =
      fmt::format("{}, {} ranks on {} node{}{}, {} bytes{}: {}", name_of(group.collective), group.ranks, group.nodes,
                  group.nodes == 1 ? "" : "s", group.oversubscribed ? ", more ranks than cores" : "",
                  lowest == highest ? tuning::text_of_bytes(lowest)
                                    : tuning::text_of_bytes(lowest) + " to " + tuning::text_of_bytes(highest),
                  arrivals == ArrivalClass::unknown ? "" : fmt::format(", {} arrivals", tuning::name_of(arrivals)),
                  choices.front().algorithm);
  if (choices.front().algorithm == "native")
    return choices.front().best_other.empty() ? text : text + "; " + choices.front().best_other;
  double lowest_ratio = choices.front().cells.front().interval[0];
  double highest_ratio = 0;
  for (const Choice& choice : choices)
    for (const Cell& cell : choice.cells) {
      lowest_ratio = std::min(lowest_ratio, cell.interval[0]);
      highest_ratio = std::max(highest_ratio, cell.interval[1]);
    }
  return text + fmt::format(", {:.2f} to {:.2f} of native", lowest_ratio, highest_ratio);
}

struct Written {
  std::uint64_t lowest_bytes;
  Json rule;
  std::string line;
};

// Reductions are measured with doubles: one stands for what is smaller, too.
constexpr std::uint64_t smallest_bytes = sizeof(double);

// Rules for the sizes for which `choose` returns a choice. A size between two that were measured goes by the lower one.
template <class Choose>
void add_rules(const Group& group, ArrivalClass arrivals, const std::map<std::uint64_t, AtSize>& sizes, Choose&& choose,
               std::vector<Written>& rules) {
  std::vector<Choice> alike;
  std::uint64_t first = 0;
  const auto end_at = [&](std::uint64_t highest) {
    if (alike.empty()) return;
    rules.push_back(
        {first, rule_of(group, arrivals, first, highest, alike), line_of(group, arrivals, first, highest, alike)});
    alike.clear();
  };
  std::uint64_t last = 0;
  for (const auto& [bytes, size] : sizes) {
    std::optional<Choice> choice = choose(size);
    if (!choice || (!alike.empty() && alike.front().algorithm != choice->algorithm)) end_at(bytes - 1);
    if (alike.empty()) first = bytes == sizes.begin()->first && bytes <= smallest_bytes ? 0 : bytes;
    if (choice) alike.push_back(std::move(*choice));
    last = bytes;
  }
  end_at(last);
}

// Where MPI's own algorithms were measured, too, their rules are for the calls that papaya's leave to it, and for all
// without papaya: they stand behind those for papaya's. Before all stand those for one pattern of arrivals: the others
// are for any, and for calls whose pattern is not known.
std::vector<Written> rules_for(const Group& group, const std::map<std::uint64_t, AtSize>& sizes) {
  const auto one_among = [](const AtSize& size, bool mpis) -> std::optional<Choice> {
    Choice choice = choice_at(size, mpis);
    if (choice.algorithm == "native") return std::nullopt;
    return choice;
  };
  std::vector<Written> rules;
  constexpr ArrivalClass any = ArrivalClass::unknown;
  add_rules(
      group, any, sizes, [&](const AtSize& size) { return one_among(size, false); }, rules);
  add_rules(
      group, any, sizes, [&](const AtSize& size) { return one_among(size, true); }, rules);
  const auto none = [&](const AtSize& size) -> std::optional<Choice> {
    if (one_among(size, false) || one_among(size, true)) return std::nullopt;
    return choice_at(size, false);
  };
  add_rules(group, any, sizes, none, rules);
  const auto by_size = [](const Written& one, const Written& other) { return one.lowest_bytes < other.lowest_bytes; };
  std::stable_sort(rules.begin(), rules.end(), by_size);
  std::vector<Written> of_patterns;
  for (const ArrivalClass arrivals : {ArrivalClass::balanced, ArrivalClass::persistent, ArrivalClass::random})
    add_rules(
        group, arrivals, sizes, [&](const AtSize& size) { return choice_under(size, arrivals); }, of_patterns);
  std::stable_sort(of_patterns.begin(), of_patterns.end(), by_size);
  rules.insert(rules.begin(), std::make_move_iterator(of_patterns.begin()), std::make_move_iterator(of_patterns.end()));
  return rules;
}

}  // namespace

bool tuned_rules(const std::vector<std::string>& texts, const std::vector<std::string>& names, Tuned& tuned,
                 std::string& problem) {
  Groups groups;
  Json measured_on;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    try {
      const Json file = Json::parse(texts[i]);
      const Json here = {{"mpi", file.at("mpi")}, {"cores", cores_of_node(file)}};
      if (!measured_on.is_null() && here != measured_on) {
        problem =
            fmt::format("{} and {} are of different machines or MPIs: make a tuning file of each.", names[0], names[i]);
        return false;
      }
      measured_on = here;
      gather(file, names[i], groups, tuned.notes);
    } catch (const Json::exception&) {
      problem = names[i] + " is no JSON file of papaya bench.";
      return false;
    }
  }
  Json rules = Json::array();
  for (const auto& [group, sizes] : groups)
    for (Written& one : rules_for(group, sizes)) {
      rules.push_back(std::move(one.rule));
      tuned.choices.push_back(std::move(one.line));
    }
  if (rules.empty()) {
    problem = "nothing was measured that tuning files have rules for.";
    return false;
  }
  tuned.json = Json{{"version", 1}, {"measured_on", measured_on}, {"rules", rules}}.dump(2) + "\n";
  return true;
}

}  // namespace papaya
