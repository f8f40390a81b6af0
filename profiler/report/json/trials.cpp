// What PAPAYA_ADAPT has tried.
#include "profiler/analysis/trials.hpp"

#include <string>

#include "profiler/report/json/values.hpp"

namespace papaya::report {

Json to_object(const TrialFigures& figures) {
  Json tried = Json::array();
  for (const TrialFigures::Tried& one : figures.tried) {
    const bool is_measured = one.samples > 0;
    tried.push_back({{"algorithm", one.algorithm},
                     {"state", std::string(state_name(one.state))},
                     {"median_us", is_measured ? microseconds(one.median_ns) : Json(nullptr)},
                     {"calls_measured", one.samples}});
  }
  Json changes = Json::array();
  for (const TrialFigures::Change& one : figures.last_changes)
    changes.push_back({{"from", one.before},
                       {"to", one.algorithm},
                       {"after_calls", one.calls},
                       {"seconds_after_init", seconds(one.at_ns)}});
  Json arrivals = Json::array();
  for (const TrialFigures::Arrivals& one : figures.last_arrivals)
    arrivals.push_back({{"pattern", name_of(one.pattern)},
                        {"straggler", one.straggler < 0 ? Json(nullptr) : Json(one.straggler)},
                        {"after_calls", one.calls},
                        {"seconds_after_init", seconds(one.at_ns)}});
  return {{"name", figures.name},
          {"communicator", figures.communicator},
          {"call_site", to_array(figures.call_site)},
          {"least_bytes", figures.has_bytes ? Json(figures.least_bytes) : Json(nullptr)},
          {"most_bytes", figures.has_bytes ? Json(figures.most_bytes) : Json(nullptr)},
          {"calls", figures.calls},
          {"trials", figures.trials},
          {"algorithm", figures.algorithm},
          {"tried", std::move(tried)},
          {"change_count", figures.changes},
          {"last_changes", std::move(changes)},
          {"arrivals_change_count", figures.arrivals_changes},
          {"last_arrivals", std::move(arrivals)},
          {"lost_seconds", seconds(figures.spent_ns)}};
}

}  // namespace papaya::report
