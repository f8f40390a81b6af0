#include "tuning/rule.hpp"

namespace papaya::tuning {

Condition broken_condition(const Rule& rule, std::uint64_t bytes, const Facts& facts) noexcept {
  if (bytes < rule.lowest_bytes || bytes > rule.highest_bytes) return Condition::bytes;
  if (!rule.ranks.hold(facts.ranks)) return Condition::ranks;
  if (!rule.nodes.hold(facts.nodes)) return Condition::nodes;
  if (!rule.ranks_per_node.hold(facts.ranks_per_node)) return Condition::ranks_per_node;
  if (rule.oversubscribed.value_or(facts.oversubscribed) != facts.oversubscribed) return Condition::oversubscribed;
  if (facts.oversubscribed && facts.native_yields && bytes > rule.highest_oversubscribed)
    return Condition::oversubscribed;
  if (rule.arrivals != ArrivalClass::unknown && rule.arrivals != facts.arrivals) return Condition::arrivals;
  if (rule.site != 0 && (rule.site & facts.sites) == 0) return Condition::site;
  return Condition::none;
}

bool covers(const Rule& one, const Rule& other) noexcept {
  return one.lowest_bytes <= other.lowest_bytes && one.highest_bytes >= other.highest_bytes &&
         one.highest_oversubscribed >= other.highest_bytes && one.ranks.cover(other.ranks) &&
         one.nodes.cover(other.nodes) && one.ranks_per_node.cover(other.ranks_per_node) &&
         (!one.oversubscribed || one.oversubscribed == other.oversubscribed) &&
         (one.arrivals == ArrivalClass::unknown || one.arrivals == other.arrivals) &&
         (one.site == 0 || one.site == other.site);
}

Reason hindrance(const Descriptor& algorithm, std::uint64_t bytes, const Facts& facts) noexcept {
  if (facts.nodes > 1 && algorithm.one_node) return Reason::several_nodes;
  if (bytes > algorithm.max_bytes) return Reason::too_large;
  if (algorithm.needs_arrival_order && !facts.may_reorder) return Reason::order;
  if (algorithm.predefined_only && !facts.predefined) return Reason::user_operation;
  return Reason::none;
}

std::string text_of_bytes(std::uint64_t bytes) {
  constexpr std::string_view units = "KMG";
  std::uint64_t value = bytes;
  std::size_t unit = 0;
  for (; value != 0 && value % 1024 == 0 && unit < units.size(); ++unit) value /= 1024;
  return std::to_string(value) + (unit == 0 ? std::string() : std::string(1, units[unit - 1]));
}

std::string text_of_algorithm(const Rule& rule) {
  if (rule.algorithm == nullptr) return "native";
  std::string text(rule.algorithm->name);
  for (std::size_t i = 0; i < rule.values.size(); ++i)
    text +=
        (i == 0 ? ":" : ",") + std::string(rule.algorithm->parameters[i].name) + "=" + std::to_string(rule.values[i]);
  return text;
}

}  // namespace papaya::tuning
