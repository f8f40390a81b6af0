#include "tuning/selection_text.hpp"

#include <algorithm>
#include <span>

namespace papaya::tuning {

namespace {

bool is_range(std::string_view word) {
  return !word.empty() && word[0] >= '0' && word[0] <= '9' && word.find('-') != word.npos;
}

// "0-4K", "4K-": [low, high], where a high that begins the next range belongs to that one.
bool parse_range(std::string_view word, Rule& rule, std::string& problem) {
  const std::size_t dash = word.find('-');
  std::int64_t low = 0;
  std::int64_t high = 0;
  if (!parse_bytes(word.substr(0, dash), low)) return false;
  rule.lowest_bytes = static_cast<std::uint64_t>(low);
  if (dash + 1 == word.size()) return true;
  if (!parse_bytes(word.substr(dash + 1), high)) return false;
  if (high < low) {
    problem = "the range " + std::string(word) + " ends before it begins";
    return false;
  }
  rule.highest_bytes = static_cast<std::uint64_t>(high);
  return true;
}

// The first rule that holds for a size counts: one whose sizes earlier rules have taken is a slip of the pen.
bool are_all_used(const std::vector<Rule>& rules, std::string& problem) {
  for (std::size_t i = 1; i < rules.size(); ++i) {
    // The lowest size that no earlier rule has taken; each look raises it past at least one rule.
    std::uint64_t bytes = rules[i].lowest_bytes;
    bool all_taken = false;
    for (std::size_t k = 0; k < i && !all_taken; ++k)
      for (std::size_t j = 0; j < i; ++j)
        if (rules[j].lowest_bytes <= bytes && bytes <= rules[j].highest_bytes) {
          all_taken = rules[j].highest_bytes >= rules[i].highest_bytes;
          if (all_taken) break;
          bytes = rules[j].highest_bytes + 1;
        }
    if (!all_taken) continue;
    const Descriptor* const algorithm = rules[i].algorithm;
    problem =
        std::string(algorithm == nullptr ? "native" : algorithm->name) +
        " would never run: what stands before it takes all its sizes (ranges such as 0-4K:ONE,4K-:OTHER share them)";
    return false;
  }
  return true;
}

}  // namespace

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

bool parse_algorithm(Collective collective, Form form, std::string_view name, Rule& rule,
                     std::vector<OldName>& old_names, std::string& problem) {
  if (name == "native") return true;
  if (name == "auto") {
    problem = form == Form::blocking ? "auto stands alone, not beside other rules or in a range"
                                     : "there is no automatic choice for nonblocking calls; name an algorithm";
    return false;
  }
  const auto can_be = [&](const Descriptor& one) {
    return one.collective == collective && (form == Form::blocking || one.split_phase);
  };
  rule.algorithm = find_algorithm(collective, name);
  if (rule.algorithm == nullptr) {
    std::vector<std::string_view> names = {"native"};
    if (form == Form::blocking) names.push_back("auto");
    for (const Descriptor* descriptor : registry())
      if (can_be(*descriptor)) names.push_back(descriptor->name);
    const std::string_view near = nearest_name(name, names);
    const bool is_blocking = form == Form::blocking;
    problem = "no algorithm '" + std::string(name) + "' for MPI_" +
              (is_blocking ? std::string(name_of(collective)) : "I" + lower(name_of(collective)));
    problem += near.empty() ? " (" : " (did you mean " + std::string(near) + "? ";
    if (is_blocking) {
      problem += "papaya info --algorithms " + lower(name_of(collective)) + " lists them)";
    } else {
      problem += "there are:";
      for (const std::string_view one : names) problem += " " + std::string(one);
      problem += ")";
    }
    return false;
  }
  if (!can_be(*rule.algorithm)) {
    problem = "'" + std::string(name) + "' has no split phase; those of MPI_" + std::string(name_of(collective)) +
              " that have one are:";
    for (const Descriptor* descriptor : registry())
      if (can_be(*descriptor)) problem += " " + std::string(descriptor->name);
    return false;
  }
  if (name != rule.algorithm->name) old_names.push_back({rule.algorithm->old_name, rule.algorithm->name});
  for (const Parameter& parameter : rule.algorithm->parameters) rule.values.push_back(parameter.fallback);
  return true;
}

bool parse_parameter(std::string_view word, Rule& rule, std::vector<OldName>& old_names, std::string& problem) {
  const std::size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const auto parameters = rule.algorithm == nullptr ? std::span<const Parameter>{} : rule.algorithm->parameters;
  const auto parameter = std::find_if(parameters.begin(), parameters.end(),
                                      [&](auto& p) { return p.name == name || (!name.empty() && p.old_name == name); });
  if (parameter == parameters.end()) {
    std::vector<std::string_view> names;
    for (const Parameter& p : parameters) names.push_back(p.name);
    const std::string_view near = nearest_name(name, names);
    problem =
        name.empty() ? "a parameter, NAME=VALUE, should follow the colon" : "no parameter '" + std::string(name) + "'";
    if (!near.empty()) problem += " (did you mean " + std::string(near) + "?)";
    return false;
  }
  std::int64_t value = 0;
  if (equals == word.npos || !parse_bytes(word.substr(equals + 1), value) || value < parameter->lowest ||
      value > parameter->highest) {
    problem = "parameter " + std::string(name) + " must be from " + std::to_string(parameter->lowest) + " to " +
              std::to_string(parameter->highest);
    if (equals != word.npos) problem += ", not '" + std::string(word.substr(equals + 1)) + "'";
    if (word.find(':') != word.npos) problem += "; commas separate parameters";
    return false;
  }
  if (name != parameter->name) old_names.push_back({parameter->old_name, parameter->name});
  rule.values[static_cast<std::size_t>(parameter - parameters.begin())] = value;
  return true;
}

bool variable_of(Collective collective, Variable& variable, Form form) noexcept {
  if (form == Form::nonblocking) {
    const bool has_one =
        collective == Collective::allreduce || collective == Collective::bcast || collective == Collective::barrier;
    variable = collective == Collective::allreduce ? Variable::iallreduce
               : collective == Collective::bcast   ? Variable::ibcast
                                                   : Variable::ibarrier;
    return has_one;
  }
  switch (collective) {
    case Collective::allreduce:
      variable = Variable::allreduce;
      return true;
    case Collective::reduce:
      variable = Variable::reduce;
      return true;
    case Collective::bcast:
      variable = Variable::bcast;
      return true;
    case Collective::alltoall:
      variable = Variable::alltoall;
      return true;
    case Collective::barrier:
      variable = Variable::barrier;
      return true;
    case Collective::allgather:
      variable = Variable::allgather;
      return true;
    case Collective::gather:
      variable = Variable::gather;
      return true;
    case Collective::scatter:
      variable = Variable::scatter;
      return true;
    case Collective::reduce_scatter:
      variable = Variable::reduce_scatter;
      return true;
    case Collective::reduce_scatter_block:
      variable = Variable::reduce_scatter_block;
      return true;
    default:
      return false;
  }
}

bool collective_of(std::string_view name, Collective& collective) noexcept {
  std::string wanted = lower(name);
  if (wanted.rfind("mpi_", 0) == 0) wanted.erase(0, 4);
  for (std::size_t i = 0; i < collective_count; ++i)
    if (lower(collective_names[i]) == wanted) {
      collective = static_cast<Collective>(i);
      return true;
    }
  return false;
}

bool parse(Collective collective, Form form, std::string_view text, Parsed& parsed, std::string& problem) {
  parsed = {};
  std::vector<Rule>& rules = parsed.rules;
  parsed.automatic = text == "auto" && form == Form::blocking;
  if (parsed.automatic) return true;
  // Items are separated by commas: a range or a name begins a rule, `param=value` belongs to the rule before
  // it.
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view item = trim(text.substr(0, comma));
    if (item.empty()) {
      problem = "an empty rule";
      return false;
    }
    if (!rules.empty() && item.find('=') != item.npos && item.find(':') == item.npos) {
      if (!parse_parameter(item, rules.back(), parsed.old_names, problem)) return false;
    } else {
      Rule rule;
      std::size_t colon = item.find(':');
      if (is_range(item.substr(0, colon))) {
        if (colon == item.npos || !parse_range(item.substr(0, colon), rule, problem)) {
          if (problem.empty()) problem = "'" + std::string(item) + "' is not LOW-HIGH:NAME";
          return false;
        }
        item.remove_prefix(colon + 1);
        colon = item.find(':');
      }
      if (!parse_algorithm(collective, form, item.substr(0, colon), rule, parsed.old_names, problem)) return false;
      if (colon != item.npos && !parse_parameter(item.substr(colon + 1), rule, parsed.old_names, problem)) return false;
      rules.push_back(std::move(rule));
    }
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
  }
  // "0-4K:A,4K-:B": the common bound belongs to the later rule.
  for (std::size_t i = 0; i + 1 < rules.size(); ++i)
    if (rules[i].highest_bytes == rules[i + 1].lowest_bytes && rules[i].highest_bytes > rules[i].lowest_bytes)
      --rules[i].highest_bytes;
  return are_all_used(rules, problem);
}

std::string text_of(const std::vector<OldName>& old_names) {
  std::string text = "The selections use old names, which still work; write";
  for (std::size_t i = 0; i < old_names.size(); ++i)
    text += (i == 0 ? " " : ", ") + std::string(old_names[i].name) + " for " + std::string(old_names[i].old_name);
  return text + ".";
}

}  // namespace papaya::tuning
