#include "api/choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "base/settings.hpp"

namespace papaya {

namespace {

// Of those that the message reaches the one with the highest bound; where it reaches none, there is one only.
const WeakDescriptor* automatic(WeakCollective collective, const WeakFacts& facts) {
  const WeakDescriptor* best = nullptr;
  const WeakDescriptor* any = nullptr;
  for (const WeakDescriptor* one : weak_registry()) {
    if (one->collective != collective) continue;
    if (any == nullptr) any = one;
    if (facts.bytes < one->automatic_from_bytes || (!facts.has_slack && !one->automatic_without_slack)) continue;
    if (best == nullptr || one->automatic_from_bytes > best->automatic_from_bytes) best = one;
  }
  return best != nullptr ? best : any;
}

const WeakDescriptor* named(WeakCollective collective, std::string_view name, std::string& problem) {
  std::vector<std::string_view> names;
  for (const WeakDescriptor* one : weak_registry())
    if (one->collective == collective) {
      if (one->name == name) return one;
      names.push_back(one->name);
    }
  const std::string_view nearest = nearest_name(name, names);
  problem =
      fmt::format("no algorithm of {} is called '{}'; {}", name_of(collective), name,
                  nearest.empty() ? fmt::format("there {} {}", names.size() == 1 ? "is" : "are", fmt::join(names, ", "))
                                  : fmt::format("did you mean {}?", nearest));
  return nullptr;
}

}  // namespace

bool set(WeakChoice& choice, std::string_view parameter, std::int64_t value, std::string& problem) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < choice.values.size(); ++i) {
    const Parameter& row = choice.algorithm->parameters[i];
    names.push_back(row.name);
    if (row.name != parameter) continue;
    if (value < row.lowest || value > row.highest) {
      problem = fmt::format("{} is {}, but {} takes {} to {}", parameter, value, choice.algorithm->name, row.lowest,
                            row.highest);
      return false;
    }
    choice.values[i] = value;
    return true;
  }
  problem = names.empty() ? fmt::format("{} has no parameters", choice.algorithm->name)
                          : fmt::format("{} has no parameter '{}'; it has {}", choice.algorithm->name, parameter,
                                        fmt::join(names, ", "));
  return false;
}

bool choose(WeakCollective collective, std::string_view text, const WeakFacts& facts, WeakChoice& choice,
            std::string& problem) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  choice.algorithm = name.empty() || name == "auto" ? automatic(collective, facts) : named(collective, name, problem);
  if (choice.algorithm == nullptr) return false;
  choice.values.clear();
  for (const Parameter& row : choice.algorithm->parameters) choice.values.push_back(row.fallback);
  std::string_view rest = colon == text.npos ? std::string_view{} : text.substr(colon + 1);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view assignment = rest.substr(0, comma);
    rest = comma == rest.npos ? std::string_view{} : rest.substr(comma + 1);
    const std::size_t equals = assignment.find('=');
    std::int64_t value = 0;
    if (equals == assignment.npos || !parse_bytes(assignment.substr(equals + 1), value)) {
      problem = fmt::format("'{}' is not parameter=number", assignment);
      return false;
    }
    if (!set(choice, assignment.substr(0, equals), value, problem)) return false;
  }
  return true;
}

}  // namespace papaya
