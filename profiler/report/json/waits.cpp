// Waiting by what it is for.
#include "profiler/report/json/values.hpp"

namespace papaya::report {

Json to_array(const std::array<WaitFigures, wait_kind_count>& waits) {
  Json array = Json::array();
  for (std::size_t kind = 0; kind < wait_kind_count; ++kind) {
    const WaitFigures& figures = waits[kind];
    const WaitName& name = wait_names[kind];
    if (figures.ns <= 0 && figures.late_exit_ns <= 0) continue;
    const bool has_late_exit = !name.late_exit.empty();
    array.push_back({{"kind", name.field},
                     {"scalasca", name.scalasca},
                     {"seconds", seconds(figures.ns)},
                     {"most_rank", figures.ns > 0 ? Json(figures.most_rank) : Json(nullptr)},
                     {"most_seconds", seconds(figures.most_ns)},
                     {"late_exit_scalasca", has_late_exit ? Json(name.late_exit) : Json(nullptr)},
                     {"late_exit_seconds", has_late_exit ? seconds(figures.late_exit_ns) : Json(nullptr)}});
  }
  return array;
}

Json by_kind(const std::array<double, wait_kind_count>& waited_ns) {
  Json object = Json::object();
  for (std::size_t kind = 0; kind < wait_kind_count; ++kind)
    if (waited_ns[kind] > 0) object[std::string(wait_names[kind].field)] = seconds(waited_ns[kind]);
  return object;
}

}  // namespace papaya::report
