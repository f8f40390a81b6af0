#include "tuning/selection.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

namespace papaya::tuning {

namespace {

// What the descriptors say of their automatic use.
const std::vector<Rule>& table_rules(Collective collective) {
  // Never destroyed: calls may come from exit handlers.
  static const auto& rules = *[] {
    auto* const all_rules = new std::array<std::vector<Rule>, collective_count>;
    auto& all = *all_rules;
    for (const Descriptor* algorithm : registry()) {
      const AutomaticUse& use = algorithm->automatic;
      if (use.most_ranks == 0) continue;
      Rule rule{.lowest_bytes = use.lowest_bytes,
                .highest_bytes = std::min<std::uint64_t>(use.highest_bytes, algorithm->max_bytes),
                .algorithm = algorithm,
                .ranks = {.highest = use.most_ranks},
                .highest_oversubscribed = use.highest_oversubscribed};
      for (const Parameter& parameter : algorithm->parameters) rule.values.push_back(parameter.fallback);
      all[index_of(algorithm->collective)].push_back(std::move(rule));
    }
    for (std::vector<Rule>& rules_of_one : all) {
      std::stable_sort(rules_of_one.begin(), rules_of_one.end(),
                       [](const Rule& one, const Rule& other) { return one.highest_bytes < other.highest_bytes; });
      for (std::size_t i = 1; i < rules_of_one.size(); ++i)
        rules_of_one[i].lowest_bytes = rules_of_one[i - 1].highest_bytes + 1;
    }
    return all_rules;
  }();
  return rules[index_of(collective)];
}

// Who takes more than so many times as long as the best one, as they say themselves, is not tried. In simulation a
// model is wrong by up to a factor of 1.5 (tests/simulation).
constexpr double hopeless = 2;

NetworkCall network_call(std::uint64_t bytes, const Facts& facts, const MessageTimes& network) noexcept {
  const int node_ranks =
      facts.ranks_per_node > 0 ? facts.ranks_per_node : (facts.ranks + facts.nodes - 1) / facts.nodes;
  const auto size = static_cast<double>(bytes);
  return {.nodes = static_cast<double>(facts.nodes),
          .ranks = static_cast<double>(facts.ranks),
          .node_ranks = static_cast<double>(node_ranks),
          .latency_ns = network.ns(0),
          .message_ns = network.ns(size),
          .bytes = size};
}

void leave_out_hopeless(std::vector<const Rule*>& rules, const NetworkCall& call) {
  double best_ns = std::numeric_limits<double>::infinity();
  for (const Rule* rule : rules) best_ns = std::min(best_ns, rule->algorithm->call_ns(call));
  std::erase_if(rules, [&](const Rule* rule) { return rule->algorithm->call_ns(call) > hopeless * best_ns; });
}

// The same rule with the radix that the model has, if it has one. It stays: plans refer to it.
const Rule* with_radix(const Rule& rule, const NetworkCall& call) {
  const Descriptor& algorithm = *rule.algorithm;
  if (algorithm.radix == nullptr) return &rule;
  static std::mutex making;
  static auto& made = *new std::map<std::pair<const Descriptor*, int>, Rule>;
  const std::lock_guard lock(making);
  const int radix = algorithm.radix(call);
  const auto [found, is_new] = made.try_emplace({&algorithm, radix}, rule);
  for (std::size_t i = 0; i < algorithm.parameters.size() && is_new; ++i)
    if (algorithm.parameters[i].name == std::string_view("radix")) found->second.values[i] = radix;
  return &found->second;
}

}  // namespace

bool Selection::take(Collective collective, std::string_view text, const std::string& where, Form form,
                     std::vector<std::string>& warnings) {
  std::string problem;
  if (select(collective, text, problem, form)) return true;
  warnings.push_back(where + ": " + problem + "; using the default, " + (form == Form::blocking ? "auto." : "native."));
  return false;
}

void Selection::take_text(std::string_view text, std::vector<std::string>& warnings) {
  Problems problems(warnings);
  std::array<int, collective_count> line_of{};  // 0: none yet
  int line_number = 0;
  const auto warn = [&](const std::string& problem) {
    problems.add("line " + std::to_string(line_number), problem + "; ignored");
  };
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    ++line_number;
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const std::size_t space = line.find_first_of(" \t");
    Collective collective{};
    if (space == line.npos || !collective_of(line.substr(0, space), collective)) {
      warn("expected JSON, or 'COLLECTIVE SELECTION', such as 'allreduce 0-4K:arrival_leader,4K-:native'");
      continue;
    }
    std::string problem;
    int& earlier = line_of[index_of(collective)];
    if (earlier != 0)
      warn(lower(name_of(collective)) + " has its selection from line " + std::to_string(earlier));
    else if (select(collective, trim(line.substr(space)), problem))
      earlier = line_number;
    else
      warn(problem);
  }
  problems.end();
}

Selection::Selection(Settings& settings, std::string_view tuning_text, std::vector<std::string>& warnings) {
  if (is_json(tuning_text)) {
    file_ = std::make_shared<const TuningFile>(read_tuning_file(tuning_text, warnings));
    note(file_->old_names);
  } else {
    take_text(tuning_text, warnings);
  }
  for (const Form form : {Form::blocking, Form::nonblocking})
    for (std::size_t i = 0; i < collective_count; ++i) {
      Variable variable{};
      const auto collective = static_cast<Collective>(i);
      if (!variable_of(collective, variable, form) || settings.is_default(variable)) continue;
      if (!take(collective, settings.text(variable),
                std::string(row_of(variable).name) + "=" + std::string(settings.text(variable)), form, warnings))
        settings.reset(variable);
    }
  if (std::string warning = old_names_warning(); !warning.empty()) warnings.push_back(std::move(warning));
}

void Selection::note(const std::vector<OldName>& old_names) {
  for (const OldName& one : old_names)
    if (std::find(old_names_.begin(), old_names_.end(), one) == old_names_.end()) old_names_.push_back(one);
}

bool Selection::select(Collective collective, std::string_view text, std::string& problem, Form form) {
  if (collective == Collective::alltoallv || collective == Collective::allgatherv) {
    problem = collective == Collective::alltoallv ? "MPI_Alltoallv goes by the selection for alltoall"
                                                  : "MPI_Allgatherv goes by the selection for allgather";
    return false;
  }
  std::shared_ptr<const Parsed>& kept = seen_[{collective, form, std::string(text)}];
  if (kept == nullptr) {
    auto parsed = std::make_shared<Parsed>();
    if (!parse(collective, form, text, *parsed, problem)) return false;
    note(parsed->old_names);
    kept = std::move(parsed);
  }
  (form == Form::blocking ? chosen_ : chosen_nonblocking_)[index_of(collective)] = kept;
  return true;
}

std::string Selection::old_names_warning() {
  if (warned_ == old_names_.size()) return "";
  const std::vector<OldName> untold(old_names_.begin() + static_cast<std::ptrdiff_t>(warned_), old_names_.end());
  warned_ = old_names_.size();
  return text_of(untold);
}

const Parsed* Selection::selected(Collective collective, Form form) const noexcept {
  const Parsed* const chosen = (form == Form::blocking ? chosen_ : chosen_nonblocking_)[index_of(collective)].get();
  return chosen == nullptr || chosen->automatic ? nullptr : chosen;
}

const std::vector<Rule>& Selection::rules_of(Collective collective, Form form) const noexcept {
  static const auto& none = *new std::vector<Rule>;  // never destroyed, as the table's
  if (const Parsed* const chosen = selected(collective, form)) return chosen->rules;
  return form == Form::blocking ? table_rules(collective) : none;
}

const std::vector<FileRule>& Selection::rows_of(Collective collective, Form form) const noexcept {
  static const auto& none = *new std::vector<FileRule>;
  const bool is_automatic = form == Form::blocking && selected(collective, form) == nullptr;
  return is_automatic && file_ != nullptr ? file_->rows[index_of(collective)] : none;
}

Choice Selection::choose(Collective collective, std::uint64_t bytes, const Facts& facts, Form form,
                         std::vector<Considered>* considered) const noexcept {
  using Source = Considered::Source;
  const bool automatic = selected(collective, form) == nullptr;
  const auto look = [&](Source source, const Rule& rule, const FileRule* row) {
    Considered one{source, &rule, row, broken_condition(rule, bytes, facts), Reason::none};
    if (one.broken == Condition::none && rule.algorithm != nullptr)
      one.hindrance = hindrance(*rule.algorithm, bytes, facts);
    if (considered != nullptr) considered->push_back(one);
    return one;
  };
  const std::vector<FileRule>& rows = rows_of(collective, form);
  for (const FileRule& row : rows) {
    const Considered one = look(Source::file, row.rule, &row);
    if (one.broken != Condition::none || one.hindrance != Reason::none) continue;
    Choice choice{.automatic = automatic, .of_file = true};
    if (row.rule.algorithm == nullptr)
      choice.reason = Reason::table;
    else
      choice.rule = &rows[row.first_alike].rule;
    return choice;
  }
  const std::vector<Rule>& rules = rules_of(collective, form);
  for (const Rule& rule : rules) {
    const auto [source, same, row, broken, reason] = look(automatic ? Source::table : Source::selection, rule, nullptr);
    if (broken != Condition::none) continue;
    if (rule.algorithm == nullptr) return {.reason = Reason::selected, .forced = true};
    if (reason == Reason::none) return {.rule = &rule, .forced = !automatic, .automatic = automatic};
    const bool names_one = !automatic && (reason == Reason::several_nodes || reason == Reason::order);
    return {
        .reason = reason, .forced = names_one, .automatic = automatic, .named = names_one ? rule.algorithm : nullptr};
  }
  return {.reason = !automatic      ? Reason::outside_ranges
                    : rules.empty() ? Reason::no_algorithm
                                    : Reason::table,
          .automatic = automatic};
}

std::vector<const Rule*> Selection::candidates(Collective collective, std::uint64_t bytes, const Facts& facts,
                                               const MessageTimes& network) {
  // Never destroyed: plans refer to them.
  static const auto& all = *[] {
    auto* const rules = new std::vector<std::pair<Collective, Rule>>;
    for (const Descriptor* algorithm : registry()) {
      if (algorithm->needs_arrival_order || (!algorithm->one_node && algorithm->call_ns == nullptr)) continue;
      Rule rule{.algorithm = algorithm};
      for (const Parameter& parameter : algorithm->parameters) rule.values.push_back(parameter.fallback);
      rules->emplace_back(algorithm->collective, std::move(rule));
    }
    return rules;
  }();
  const bool is_on_one_node = facts.nodes == 1;
  std::vector<const Rule*> found;
  for (const auto& [of, rule] : all)
    if (of == collective && rule.algorithm->one_node == is_on_one_node &&
        hindrance(*rule.algorithm, bytes, facts) == Reason::none)
      found.push_back(&rule);
  if (is_on_one_node) return found;
  const NetworkCall call = network_call(bytes, facts, network);
  leave_out_hopeless(found, call);
  for (const Rule*& rule : found) rule = with_radix(*rule, call);
  return found;
}

Choice Selection::choose_for_any_size(Collective collective, Collective form, const Facts& facts) const noexcept {
  const Choice choice = choose(collective, 1, facts);
  const auto differs_at = [&](std::uint64_t bytes) {
    if (bytes <= 1) return false;
    const Choice other = choose(collective, bytes, facts);
    const auto algorithm_of = [](const Choice& one) { return one.rule == nullptr ? nullptr : one.rule->algorithm; };
    return algorithm_of(other) != algorithm_of(choice);
  };
  // The choice changes nowhere but at these sizes.
  const auto changes_within = [&](const Rule& rule) {
    return differs_at(rule.lowest_bytes) || differs_at(rule.highest_bytes + 1) ||
           differs_at(rule.highest_oversubscribed + 1);
  };
  // Those of the file that are for others or for no size but 0 change nothing, and are many.
  const auto row_changes = [&](const FileRule& row) {
    const std::uint64_t bytes = std::max<std::uint64_t>(row.rule.lowest_bytes, 1);
    return broken_condition(row.rule, bytes, facts) == Condition::none && changes_within(row.rule);
  };
  const std::vector<FileRule>& rows = rows_of(collective, Form::blocking);
  const std::vector<Rule>& rules = rules_of(collective, Form::blocking);
  if (std::any_of(rows.begin(), rows.end(), row_changes) || std::any_of(rules.begin(), rules.end(), changes_within))
    return {.reason = Reason::sizes};
  if (choice.rule != nullptr && !serves(*choice.rule->algorithm, form)) return {.reason = Reason::no_algorithm};
  return choice;
}

template <class Holds>
bool Selection::any_rule(Holds&& holds) const noexcept {
  for (const Form form : {Form::blocking, Form::nonblocking})
    for (std::size_t i = 0; i < collective_count; ++i) {
      const auto collective = static_cast<Collective>(i);
      const auto has = [&](const Rule& rule) { return rule.algorithm != nullptr && holds(*rule.algorithm, form); };
      const std::vector<FileRule>& rows = rows_of(collective, form);
      const std::vector<Rule>& rules = rules_of(collective, form);
      if (std::any_of(rows.begin(), rows.end(), [&](const FileRule& row) { return has(row.rule); }) ||
          std::any_of(rules.begin(), rules.end(), has))
        return true;
    }
  return false;
}

bool Selection::goes_by_arrivals(Collective collective) const noexcept {
  return !rows_of(collective, Form::blocking).empty() && file_->by_arrivals[index_of(collective)];
}

std::uint64_t Selection::sites_of(Collective collective) const noexcept {
  return rows_of(collective, Form::blocking).empty() ? 0 : file_->by_site[index_of(collective)];
}

std::span<const std::string> Selection::sites() const noexcept {
  return file_ == nullptr ? std::span<const std::string>() : file_->sites;
}

bool Selection::works_across_nodes() const noexcept {
  return any_rule([](const Descriptor& algorithm, Form) { return !algorithm.one_node; });
}

bool Selection::replaces_anything() const noexcept {
  return any_rule([](const Descriptor&, Form) { return true; });
}

bool Selection::replaces_nonblocking() const noexcept {
  return any_rule([](const Descriptor&, Form form) { return form == Form::nonblocking; });
}

}  // namespace papaya::tuning
