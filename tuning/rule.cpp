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
  return Condition::none;
}

Reason hindrance(const Descriptor& algorithm, std::uint64_t bytes, const Facts& facts) noexcept {
  if (facts.nodes > 1 && algorithm.one_node) return Reason::several_nodes;
  if (bytes > algorithm.max_bytes) return Reason::too_large;
  if (algorithm.needs_arrival_order && !facts.may_reorder) return Reason::order;
  if (algorithm.predefined_only && !facts.predefined) return Reason::user_operation;
  return Reason::none;
}

}  // namespace papaya::tuning
