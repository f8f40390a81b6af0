#include "tuning/approx_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/settings.hpp"
#include "tuning/named_site.hpp"
#include "tuning/selection_text.hpp"

namespace papaya::tuning {

namespace {

constexpr int most_cycle = 64;

// The MPI collective that a weak one may stand for.
Collective stands_for(WeakCollective collective) noexcept {
  if (collective == WeakCollective::threshold_bcast) return Collective::bcast;
  return collective == WeakCollective::threshold_reduce ? Collective::reduce : Collective::allreduce;
}

bool has_threshold(const WeakDescriptor& algorithm) noexcept {
  return algorithm.collective == WeakCollective::threshold_bcast ||
         algorithm.collective == WeakCollective::threshold_reduce;
}

// Up to the next of `mark` outside double quotes; `text` goes on behind it.
std::string_view take_to(std::string_view& text, char mark) {
  bool is_quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') is_quoted = !is_quoted;
    if (text[i] != mark || is_quoted) continue;
    const std::string_view front = text.substr(0, i);
    text.remove_prefix(i + 1);
    return front;
  }
  return std::exchange(text, {});
}

bool parse_places(std::string_view text, ApproxRule& rule, std::string& problem) {
  do {
    std::string_view place = trim(take_to(text, '|'));
    const bool is_quoted = place.size() > 1 && place.front() == '"' && place.back() == '"';
    if (is_quoted) place = place.substr(1, place.size() - 2);
    if (place.empty() || place.find('"') != place.npos) {
      problem = "after the @ stands the name of a communicator, or a call site as the report writes it";
      return false;
    }
    (!is_quoted && looks_like_site(place) ? rule.sites : rule.names).emplace_back(place);
  } while (!text.empty());
  return true;
}

bool parse_name(std::string_view name, std::span<const WeakDescriptor* const> algorithms, ApproxRule& rule,
                std::string& problem) {
  std::vector<std::string_view> names;
  for (const WeakDescriptor* one : algorithms) {
    if (stands_for(one->collective) != rule.collective) continue;
    if (one->name == name) rule.algorithm = one;
    names.push_back(one->name);
  }
  if (rule.algorithm == nullptr) {
    const std::string_view near = nearest_name(name, names);
    problem =
        fmt::format("no weakly consistent algorithm '{}' for MPI_{}; {}", name, name_of(rule.collective),
                    near.empty() ? fmt::format("there {} {}", names.size() == 1 ? "is" : "are", fmt::join(names, ", "))
                                 : fmt::format("did you mean {}?", near));
    return false;
  }
  for (const Parameter& row : rule.algorithm->parameters) rule.values.push_back(row.fallback);
  return true;
}

bool parse_threshold(std::string_view value, ApproxRule& rule, std::string& problem) {
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), rule.threshold);
  if (error == std::errc{} && end == value.data() + value.size() && rule.threshold > 0 && rule.threshold <= 1)
    return true;
  problem = fmt::format("threshold must be above 0 and at most 1, not '{}'", value);
  return false;
}

bool parse_value(std::string_view name, std::string_view value, std::int64_t lowest, std::int64_t highest,
                 std::int64_t& number, std::string& problem) {
  if (parse_bytes(value, number) && number >= lowest && number <= highest) return true;
  problem = fmt::format("{} must be from {} to {}, not '{}'", name, lowest, highest, value);
  return false;
}

bool parse_parameter(std::string_view text, ApproxRule& rule, std::string& problem) {
  const std::size_t equals = text.find('=');
  const std::string_view name = trim(text.substr(0, equals));
  const std::string_view value = equals == text.npos ? "" : trim(text.substr(equals + 1));
  if (name == "threshold" && has_threshold(*rule.algorithm)) return parse_threshold(value, rule, problem);
  std::int64_t number = 0;
  if (name == "cycle") {
    if (!parse_value(name, value, 1, most_cycle, number, problem)) return false;
    rule.cycle = static_cast<int>(number);
    return true;
  }
  std::vector<std::string_view> names = {"cycle"};
  if (has_threshold(*rule.algorithm)) names.push_back("threshold");
  for (std::size_t i = 0; i < rule.values.size(); ++i) {
    const Parameter& row = rule.algorithm->parameters[i];
    names.push_back(row.name);
    if (row.name != name) continue;
    return parse_value(name, value, row.lowest, row.highest, rule.values[i], problem);
  }
  const std::string_view near = nearest_name(name, names);
  problem = fmt::format(
      "{} has no parameter '{}'; {}", rule.algorithm->name, name,
      near.empty() ? fmt::format("it has {}", fmt::join(names, ", ")) : fmt::format("did you mean {}?", near));
  return false;
}

bool parse_rule(std::string_view item, std::span<const WeakDescriptor* const> algorithms, ApproxRule& rule,
                std::string& problem) {
  const std::size_t at = item.find('@');
  const std::string_view collective = trim(item.substr(0, at));
  if (!collective_of(collective, rule.collective) ||
      (rule.collective != Collective::allreduce && rule.collective != Collective::reduce &&
       rule.collective != Collective::bcast)) {
    problem = fmt::format("'{}' is none of allreduce, reduce and bcast, whose results can be approximate", collective);
    return false;
  }
  std::string_view rest = item.substr(at + 1);
  if (!parse_places(take_to(rest, '='), rule, problem)) return false;
  const std::size_t colon = rest.find(':');
  if (trim(rest.substr(0, colon)).empty()) {
    problem = fmt::format("the rule '{}' names no algorithm; write COLLECTIVE@PLACE=NAME", item);
    return false;
  }
  if (!parse_name(trim(rest.substr(0, colon)), algorithms, rule, problem)) return false;
  return colon == rest.npos || parse_parameter(rest.substr(colon + 1), rule, problem);
}

// A call may be meant by one rule alone.
bool are_apart(const std::vector<ApproxRule>& rules, std::string& problem) {
  std::map<std::pair<Collective, std::string>, int> names;
  std::map<Collective, int> with_sites;
  for (const ApproxRule& rule : rules) {
    for (const std::string& name : rule.names)
      if (names[{rule.collective, name}]++ > 0) {
        problem = fmt::format("two rules are for MPI_{} on \"{}\"", name_of(rule.collective), name);
        return false;
      }
    if (!rule.sites.empty() && with_sites[rule.collective]++ > 0) {
      problem = fmt::format("two rules name call sites of MPI_{}; one rule may name several, as in a.c:10|a.c:20",
                            name_of(rule.collective));
      return false;
    }
  }
  return true;
}

std::string number_text(const ApproxRule& rule, std::size_t i) {
  return fmt::format("{}={}", rule.algorithm->parameters[i].name, rule.values[i]);
}

}  // namespace

bool parse_approx(std::string_view text, std::span<const WeakDescriptor* const> algorithms,
                  std::vector<ApproxRule>& rules, std::string& problem) {
  rules.clear();
  do {
    const std::string_view item = trim(take_to(text, ','));
    if (item.find('@') == item.npos) {
      if (rules.empty() || item.empty()) {
        problem = fmt::format("'{}' is not COLLECTIVE@PLACE=NAME[:parameter=value,...]", item);
        return false;
      }
      if (!parse_parameter(item, rules.back(), problem)) return false;
      continue;
    }
    if (rules.size() == most_approx_rules) {
      problem = fmt::format("there are more than {} rules", most_approx_rules);
      return false;
    }
    if (!parse_rule(item, algorithms, rules.emplace_back(), problem)) return false;
  } while (!text.empty());
  return are_apart(rules, problem);
}

std::string without_effect(std::string_view value, std::string_view problem) {
  return fmt::format("PAPAYA_APPROX={}: {}{}", value, problem,
                     problem.ends_with('?') ? " All results are exact." : "; all results are exact.");
}

std::string ApproxRule::places() const {
  std::string text;
  for (const std::string& name : names) text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", name);
  if (!names.empty()) text = (names.size() == 1 ? "communicator " : "communicators ") + text;
  if (!names.empty() && !sites.empty()) text += " and ";
  if (!sites.empty())
    text += fmt::format("{} {}", sites.size() == 1 ? "call site" : "call sites", fmt::join(sites, ", "));
  return text;
}

std::string ApproxRule::bound() const {
  std::string text(algorithm->name);
  if (has_threshold(*algorithm)) text += fmt::format(", threshold {:g}", threshold);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Parameter& row = algorithm->parameters[i];
    const bool is_bound = row.name == "slack" || row.name == "lag" || row.name == "group" || row.name == "period" ||
                          row.name == "per_million";
    if (is_bound || values[i] != row.fallback) text += fmt::format(", {} {}", row.name, values[i]);
  }
  if (cycle > 1) text += fmt::format(", cycle {}", cycle);
  return text;
}

std::string ApproxRule::selection() const {
  std::string text(algorithm->name);
  for (std::size_t i = 0; i < values.size(); ++i) text += (i == 0 ? ":" : ",") + number_text(*this, i);
  return text;
}

}  // namespace papaya::tuning
