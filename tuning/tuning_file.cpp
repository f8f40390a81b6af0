#include "tuning/tuning_file.hpp"

#include <algorithm>
#include <iterator>
#include <span>

#include "base/settings.hpp"
#include "tuning/json_text.hpp"
#include "tuning/load.hpp"
#include "tuning/named_site.hpp"

namespace papaya::tuning {

namespace {

using json::Member;
using json::shown;
using json::Value;
using Kind = Value::Kind;

constexpr std::uint64_t file_version = 1;

// What objects may have; docs/tuning.schema.json has the same.
constexpr std::array<std::string_view, 5> file_fields = {"$schema", "version", "comment", "measured_on", "rules"};
constexpr std::array<std::string_view, 12> rule_fields = {"collective", "algorithm",      "parameters",     "ranks",
                                                          "nodes",      "ranks_per_node", "oversubscribed", "bytes",
                                                          "arrivals",   "site",           "comment",        "measured"};
constexpr std::array<std::string_view, 9> measured_fields = {
    "bytes", "pattern", "skew_us", "excess_us", "native_excess_us", "ratio", "ratio_interval", "outcome", "turns"};
constexpr std::array<std::string_view, 5> native_fields = {"openmpi", "fanout", "segment_bytes", "mpich", "ucc"};
constexpr std::array<std::string_view, 4> outcomes = {"SAME", "FASTER", "SLOWER", "UNCLEAR"};

std::string did_you_mean(std::string_view word, std::span<const std::string_view> names) {
  const std::string_view near = nearest_name(word, names);
  return near.empty() ? "" : " (did you mean " + std::string(near) + "?)";
}

class Reader {
 public:
  Reader(std::string_view text, std::vector<std::string>& warnings) : text_(text), problems_(warnings) {}

  TuningFile read();

 private:
  // False, for whoever found the problem to return.
  bool refuse(std::size_t at, const std::string& problem) {
    at_ = at;
    problem_ = problem;
    return false;
  }
  // Has `problem_` become a warning; `effect` ends the sentence.
  void warn(std::string_view effect);

  // Of places that come in their order.
  std::size_t line_of(std::size_t at);

  bool check_fields(const Value& object, std::span<const std::string_view> known, std::string_view of);
  bool take_whole(const Value& value, std::uint64_t lowest, std::string_view what, std::uint64_t& number);
  bool take_bytes(const Value& value, std::uint64_t& bytes);
  bool take_bounds(const Value& value, std::string_view what, Bounds& bounds);
  bool take_sizes(const Value& value, Rule& rule);
  bool take_text(const Value& value, std::string_view what, std::string& text);
  bool take_number(const Value& value, std::string_view what, std::optional<double>& number);
  bool take_arrivals(const Value& value, Rule& rule);
  bool take_site(const Value& value, Rule& rule);
  bool take_algorithm(const Value& object, Collective collective, FileRule& row);
  bool take_parameters(const Value& value, Rule& rule);
  bool take_native(const Value& value, Collective collective, Native& native);
  bool take_collective(const Value& object, Collective& collective);
  bool take_condition(const Member& member, FileRule& row);
  bool take_rule(const Value& object);
  bool take_measured(const Value& value, std::vector<Measured>& measured);
  bool take_cell_field(const Member& member, Measured& measured);
  bool is_reached(const Value& object, Collective collective, const FileRule& row);

  std::string_view text_;
  Problems problems_;
  TuningFile file_;
  std::size_t counted_ = 0;  // of the text, for line_of
  std::size_t line_ = 1;
  std::size_t at_ = 0;  // of the problem
  std::string problem_;
};

const Member* find(const Value& object, std::string_view name) {
  const auto found =
      std::find_if(object.members.begin(), object.members.end(), [&](const Member& one) { return one.name == name; });
  return found == object.members.end() ? nullptr : &*found;
}

void Reader::warn(std::string_view effect) {
  const json::Place place = json::place_of(text_, at_);
  problems_.add("line " + std::to_string(place.line) + ", column " + std::to_string(place.column),
                problem_ + "; " + std::string(effect));
}

std::size_t Reader::line_of(std::size_t at) {
  for (; counted_ < at; ++counted_) line_ += text_[counted_] == '\n' ? 1 : 0;
  return line_;
}

bool Reader::check_fields(const Value& object, std::span<const std::string_view> known, std::string_view of) {
  for (std::size_t i = 0; i < object.members.size(); ++i) {
    const Member& member = object.members[i];
    if (std::find(known.begin(), known.end(), member.name) == known.end())
      return refuse(member.at, "no field '" + shown(member.name) + "' in " + std::string(of) +
                                   did_you_mean(shown(member.name), known));
    if (find(object, member.name) != &member) return refuse(member.at, "'" + member.name + "' is there twice");
  }
  return true;
}

bool Reader::take_whole(const Value& value, std::uint64_t lowest, std::string_view what, std::uint64_t& number) {
  if (value.kind != Kind::whole || value.whole < lowest || value.whole > Bounds::any)
    return refuse(value.at, std::string(what) + " must be a whole number from " + std::to_string(lowest) + " to " +
                                std::to_string(Bounds::any));
  number = value.whole;
  return true;
}

bool Reader::take_bytes(const Value& value, std::uint64_t& bytes) {
  std::int64_t parsed = 0;
  if (value.kind == Kind::whole)
    bytes = value.whole;
  else if (value.kind == Kind::string && parse_bytes(value.text, parsed))
    bytes = static_cast<std::uint64_t>(parsed);
  else
    return refuse(value.at, "a size must be a whole number or a text such as \"64K\"");
  return true;
}

// N, or [LOWEST, HIGHEST] where null is no limit.
bool Reader::take_bounds(const Value& value, std::string_view what, Bounds& bounds) {
  const bool is_range = value.kind == Kind::array;
  if (is_range && value.items.size() != 2)
    return refuse(value.at, std::string(what) + " must be a number, or [LOWEST, HIGHEST]");
  const Value& low = is_range ? value.items[0] : value;
  const Value& high = is_range ? value.items[1] : value;
  std::uint64_t lowest = 1;
  std::uint64_t highest = Bounds::any;
  if (!(is_range && low.kind == Kind::null) && !take_whole(low, 1, what, lowest)) return false;
  if (!(is_range && high.kind == Kind::null) && !take_whole(high, 1, what, highest)) return false;
  if (highest < lowest) return refuse(value.at, "this range of " + std::string(what) + " ends before it begins");
  if (lowest > 1 || highest < Bounds::any) bounds = {static_cast<int>(lowest), static_cast<int>(highest)};
  return true;
}

bool Reader::take_sizes(const Value& value, Rule& rule) {
  if (value.kind != Kind::array) {
    if (!take_bytes(value, rule.lowest_bytes)) return false;
    rule.highest_bytes = rule.lowest_bytes;
    return true;
  }
  if (value.items.size() != 2) return refuse(value.at, "bytes must be a size, or [LOWEST, HIGHEST]");
  if (value.items[0].kind != Kind::null && !take_bytes(value.items[0], rule.lowest_bytes)) return false;
  if (value.items[1].kind != Kind::null && !take_bytes(value.items[1], rule.highest_bytes)) return false;
  if (rule.highest_bytes < rule.lowest_bytes) return refuse(value.at, "this range of bytes ends before it begins");
  return true;
}

bool Reader::take_text(const Value& value, std::string_view what, std::string& text) {
  if (value.kind != Kind::string) return refuse(value.at, std::string(what) + " must be a text");
  text = value.text;
  return true;
}

bool Reader::take_number(const Value& value, std::string_view what, std::optional<double>& number) {
  if ((value.kind != Kind::whole && value.kind != Kind::number) || value.number < 0)
    return refuse(value.at, std::string(what) + " must be a number, not below 0");
  number = value.number;
  return true;
}

bool Reader::take_arrivals(const Value& value, Rule& rule) {
  const auto found = std::find(arrival_names.begin(), arrival_names.end(), value.text);
  if (value.kind != Kind::string || found == arrival_names.end())
    return refuse(value.at, "arrivals must be any, balanced, persistent, rotating, drifting or random" +
                                did_you_mean(shown(value.text), arrival_names));
  rule.arrivals = static_cast<ArrivalClass>(found - arrival_names.begin());
  return true;
}

bool Reader::take_site(const Value& value, Rule& rule) {
  if (value.kind != Kind::string || !looks_like_site(value.text))
    return refuse(value.at, "site must be a call site as the report has it, such as solve.c:88 or solver+0x11f3");
  std::vector<std::string>& sites = file_.sites;
  const auto known = std::find(sites.begin(), sites.end(), value.text);
  if (known == sites.end() && sites.size() == most_sites)
    return refuse(value.at, "more than " + std::to_string(most_sites) + " call sites");
  rule.site = std::uint64_t{1} << (known - sites.begin());
  if (known == sites.end()) sites.push_back(value.text);
  return true;
}

bool Reader::take_collective(const Value& object, Collective& collective) {
  const Member* const member = find(object, "collective");
  if (member == nullptr) return refuse(object.at, "the rule has no collective");
  const std::string name = shown(member->value.text);
  Variable variable{};
  if (collective_of(name, collective) && variable_of(collective, variable)) return true;
  if (collective_of(name, collective) && collective == Collective::alltoallv)
    return refuse(member->value.at, "MPI_Alltoallv goes by the rules for alltoall");
  if (collective_of(name, collective) && collective == Collective::allgatherv)
    return refuse(member->value.at, "MPI_Allgatherv goes by the rules for allgather");
  std::vector<std::string> names;
  for (std::size_t i = 0; i < collective_count; ++i)
    if (variable_of(static_cast<Collective>(i), variable)) names.push_back(lower(collective_names[i]));
  const std::vector<std::string_view> known(names.begin(), names.end());
  return refuse(member->value.at, "no algorithms for a collective '" + name + "'" + did_you_mean(lower(name), known));
}

bool Reader::take_parameters(const Value& value, Rule& rule) {
  if (value.kind != Kind::object) return refuse(value.at, "parameters must be an object");
  for (const Member& member : value.members) {
    if (find(value, member.name) != &member) return refuse(member.at, "'" + shown(member.name) + "' is there twice");
    const bool is_text = member.value.kind == Kind::string;
    if (!is_text && member.value.kind != Kind::whole)
      return refuse(member.value.at, "a parameter must be a whole number or a text such as \"64K\"");
    const std::string given = is_text ? shown(member.value.text) : std::to_string(member.value.whole);
    // Of a name and of what it is set to the former is asked first.
    std::string problem;
    const bool has_name = member.name.find_first_of("=:") == member.name.npos;
    const std::string word = has_name ? shown(member.name) + "=" + given : shown(member.name);
    if (!parse_parameter(word, rule, file_.old_names, problem))
      return refuse(problem.starts_with("no parameter") ? member.at : member.value.at, problem);
  }
  return true;
}

// Of native: what won, by the names of MPI libraries.
bool Reader::take_native(const Value& value, Collective collective, Native& native) {
  if (value.kind != Kind::object) return refuse(value.at, "parameters must be an object");
  if (!check_fields(value, native_fields, "the parameters of native")) return false;
  for (const Member& member : value.members) {
    if (member.name == "fanout" && !take_whole(member.value, 1, "fanout", native.fanout)) return false;
    if (member.name == "segment_bytes") {
      if (!take_bytes(member.value, native.segment_bytes)) return false;
      if (native.segment_bytes > Bounds::any) return refuse(member.value.at, "segment_bytes must be below 2G");
    }
    for (const NativeLibrary& library : native_libraries) {
      if (member.name != library.field) continue;
      const auto names = library.algorithms(collective);
      const auto found = library.find(collective, member.value.text);
      if (member.value.kind != Kind::string || !found)
        return refuse(member.value.at, "no algorithm '" + shown(member.value.text) + "' of " +
                                           std::string(library.name) + " for MPI_" + std::string(name_of(collective)) +
                                           did_you_mean(shown(member.value.text), names));
      native.*library.algorithm = names[*found];
    }
  }
  if (native.openmpi.empty() && (native.fanout != 0 || native.segment_bytes != 0))
    return refuse(value.at, "fanout and segment_bytes are about an algorithm of Open MPI, openmpi");
  return native.names_any() || refuse(value.at, "the parameters of native name none of MPI's algorithms");
}

bool Reader::take_algorithm(const Value& object, Collective collective, FileRule& row) {
  Rule& rule = row.rule;
  const Member* const member = find(object, "algorithm");
  if (member == nullptr) return refuse(object.at, "the rule has no algorithm");
  if (member->value.kind != Kind::string) return refuse(member->value.at, "algorithm must be a text");
  std::string problem;
  if (!parse_algorithm(collective, Form::blocking, shown(member->value.text), rule, file_.old_names, problem))
    return refuse(member->value.at, problem);
  const Member* const parameters = find(object, "parameters");
  if (parameters == nullptr) return true;
  return rule.algorithm == nullptr ? take_native(parameters->value, collective, row.native)
                                   : take_parameters(parameters->value, rule);
}

bool Reader::take_condition(const Member& member, FileRule& row) {
  const Value& value = member.value;
  Rule& rule = row.rule;
  if (member.name == "ranks") return take_bounds(value, "ranks", rule.ranks);
  if (member.name == "nodes") return take_bounds(value, "nodes", rule.nodes);
  if (member.name == "ranks_per_node") return take_bounds(value, "ranks_per_node", rule.ranks_per_node);
  if (member.name == "bytes") return take_sizes(value, rule);
  if (member.name == "arrivals") return take_arrivals(value, rule);
  if (member.name == "site") return take_site(value, rule);
  if (member.name == "comment") return take_text(value, "comment", row.comment);
  if (member.name == "oversubscribed") {
    if (value.kind != Kind::boolean) return refuse(value.at, "oversubscribed must be true or false");
    rule.oversubscribed = value.truth;
  }
  return true;
}

// The first rule that applies counts: one that never does is a slip of the pen. Of an algorithm that does not serve all
// calls the next rule serves the others; and one that names an algorithm of MPI's own is for programs without papaya,
// too, where those for papaya's do not count.
bool Reader::is_reached(const Value& object, Collective collective, const FileRule& row) {
  for (const FileRule& earlier : file_.rows[index_of(collective)]) {
    const Descriptor* const algorithm = earlier.rule.algorithm;
    if (algorithm != nullptr && row.native.names_any()) continue;
    const bool serves_all = algorithm == nullptr || (!algorithm->needs_arrival_order && !algorithm->predefined_only &&
                                                     row.rule.highest_bytes <= algorithm->max_bytes &&
                                                     (!algorithm->one_node || row.rule.nodes.highest == 1));
    if (serves_all && covers(earlier.rule, row.rule))
      return refuse(object.at, "this rule would never apply: the one of line " + std::to_string(earlier.line) +
                                   " stands before it and takes all its calls");
  }
  return true;
}

bool Reader::take_rule(const Value& object) {
  if (object.kind != Kind::object) return refuse(object.at, "a rule must be an object");
  Collective collective{};
  FileRule row;
  row.line = line_of(object.at);
  if (!check_fields(object, rule_fields, "a rule") || !take_collective(object, collective) ||
      !take_algorithm(object, collective, row))
    return false;
  for (const Member& member : object.members)
    if (!take_condition(member, row)) return false;
  std::vector<FileRule>& rows = file_.rows[index_of(collective)];
  if (rows.size() == most_rows)
    return refuse(object.at, "more than " + std::to_string(most_rows) + " rules for one collective");
  if (!is_reached(object, collective, row)) return false;
  if (const Member* const measured = find(object, "measured"); measured != nullptr)
    if (!take_measured(measured->value, row.measured)) {
      warn("what was measured is not shown");
      row.measured.clear();
    }
  const auto alike = std::find_if(rows.begin(), rows.end(), [&](const FileRule& one) {
    return one.rule.algorithm == row.rule.algorithm && one.rule.values == row.rule.values;
  });
  row.first_alike = static_cast<std::size_t>(alike - rows.begin());
  if (row.rule.arrivals != ArrivalClass::unknown) file_.by_arrivals[index_of(collective)] = true;
  file_.by_site[index_of(collective)] |= row.rule.site;
  rows.push_back(std::move(row));
  return true;
}

bool Reader::take_cell_field(const Member& member, Measured& measured) {
  const Value& value = member.value;
  const std::string& name = member.name;
  if (name == "bytes") return take_bytes(value, measured.bytes.emplace());
  if (name == "pattern") return take_text(value, name, measured.pattern);
  if (name == "skew_us") return take_number(value, name, measured.skew_us);
  if (name == "excess_us") return take_number(value, name, measured.excess_us);
  if (name == "native_excess_us") return take_number(value, name, measured.native_excess_us);
  if (name == "turns") return take_whole(value, 0, name, measured.turns.emplace());
  if (value.kind == Kind::null) return true;
  if (name == "ratio") return take_number(value, name, measured.ratio);
  if (name == "outcome") {
    if (!take_text(value, name, measured.outcome)) return false;
    const bool is_known = std::find(outcomes.begin(), outcomes.end(), value.text) != outcomes.end();
    return is_known || refuse(value.at, "an outcome is SAME, FASTER, SLOWER or UNCLEAR");
  }
  std::array<std::optional<double>, 2> ends;
  if (value.kind != Kind::array || value.items.size() != 2)
    return refuse(value.at, "ratio_interval must be two numbers");
  for (std::size_t i = 0; i < ends.size(); ++i)
    if (!take_number(value.items[i], name, ends[i])) return false;
  measured.ratio_interval = {*ends[0], *ends[1]};
  return true;
}

bool Reader::take_measured(const Value& value, std::vector<Measured>& measured) {
  if (value.kind != Kind::array) return refuse(value.at, "measured must be a list of objects");
  for (const Value& cell : value.items) {
    if (cell.kind != Kind::object) return refuse(cell.at, "measured must be a list of objects");
    if (!check_fields(cell, measured_fields, "what was measured")) return false;
    Measured& one = measured.emplace_back();
    for (const Member& member : cell.members)
      if (!take_cell_field(member, one)) return false;
  }
  return true;
}

TuningFile Reader::read() {
  constexpr std::string_view whole_file_ignored = "the file is ignored, and the built-in table used";
  Value root;
  const auto ignore = [&](std::size_t at, const std::string& problem) {
    refuse(at, problem);
    warn(whole_file_ignored);
    return TuningFile{};
  };
  if (text_.size() > largest_file) return ignore(0, "larger than " + text_of_bytes(largest_file));
  if (std::string problem; !json::parse(text_, root, problem, at_)) return ignore(at_, problem);
  if (root.kind != Kind::object) return ignore(root.at, "a tuning file must be an object");
  const Member* const version = find(root, "version");
  if (version == nullptr) return ignore(root.at, "the file has no version");
  if (version->value.kind != Kind::whole || version->value.whole != file_version)
    return ignore(version->value.at, "this papaya reads version " + std::to_string(file_version));
  if (!check_fields(root, file_fields, "a tuning file")) warn("it is ignored");
  const Member* const rules = find(root, "rules");
  if (rules == nullptr || rules->value.kind != Kind::array)
    return ignore(rules == nullptr ? root.at : rules->value.at, "the file has no list of rules");
  for (const Value& rule : rules->value.items)
    if (!take_rule(rule)) warn("the rule is ignored");
  problems_.end();
  return std::move(file_);
}

}  // namespace

TuningFile read_tuning_file(std::string_view text, std::vector<std::string>& warnings) {
  return Reader(text, warnings).read();
}

}  // namespace papaya::tuning
