// POP's efficiencies.
#include "profiler/report/json/values.hpp"

namespace papaya::report {

Json to_object(const Efficiency& efficiency) {
  if (!efficiency.is_known) return nullptr;
  return {{"parallel", number(efficiency.parallel)},
          {"load_balance", number(efficiency.load_balance)},
          {"balance_within_nodes", number(efficiency.balance_within_nodes)},
          {"balance_between_nodes", number(efficiency.balance_between_nodes)},
          {"communication", number(efficiency.communication)},
          {"serialisation", efficiency.knows_transfer ? number(efficiency.serialisation) : Json(nullptr)},
          {"transfer", efficiency.knows_transfer ? number(efficiency.transfer) : Json(nullptr)}};
}

Json to_object(const PartEfficiency& part) {
  if (part.span_ns <= 0) return nullptr;
  const Efficiency& one = part.of_part;
  return {{"seconds", seconds(part.span_ns)},
          {"communication", number(one.communication)},
          {"serialisation", one.knows_transfer ? number(one.serialisation) : Json(nullptr)},
          {"transfer", one.knows_transfer ? number(one.transfer) : Json(nullptr)}};
}

}  // namespace papaya::report
