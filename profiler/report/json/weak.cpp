// Weakly consistent collectives, and calls that PAPAYA_APPROX served.
#include "profiler/report/json/values.hpp"

namespace papaya::report {
namespace {

Json to_object(const WeakSums& sums) {
  const bool is_compared = sums.compared > 0;
  const bool has_age = sums.aged_calls > 0;
  return {{"calls", sums.calls},
          {"bytes", sums.bytes},
          {"seconds", seconds(sums.inside_ns)},
          {"waited_seconds", seconds(sums.waited_ns)},
          {"staleness", has_age ? number(sums.staleness) : Json(nullptr)},
          {"most_staleness", has_age ? Json(sums.most_staleness) : Json(nullptr)},
          {"share", number(sums.share)},
          {"compared_calls", sums.compared},
          {"compared_waited_seconds", is_compared ? seconds(sums.compared_waited_ns) : Json(nullptr)},
          {"consistent_waiting_seconds", is_compared ? seconds(sums.consistent_waiting_ns) : Json(nullptr)},
          {"saved_seconds", is_compared ? seconds(sums.saved_ns()) : Json(nullptr)}};
}

}  // namespace

Json to_object(const WeakFigures& figures) {
  Json object = {{"name", figures.collective}, {"algorithm", figures.algorithm}, {"parameters", figures.parameters}};
  object.update(to_object(figures.sums));
  const auto list = [&](const char* name, const auto& items, auto&& describe) {
    Json array = Json::array();
    for (const auto& item : items) {
      Json one = describe(item);
      one.update(to_object(item.sums));
      array.push_back(std::move(one));
    }
    object[name] = std::move(array);
  };
  list("ranks", figures.ranks, [](const WeakRank& rank) -> Json {
    return {{"rank", rank.rank}, {"caused_waiting_seconds", seconds(rank.caused_ns)}};
  });
  list("call_sites", figures.sites, [](const WeakSite& site) -> Json {
    Json late = Json::array();
    for (const WeakAwaited& one : site.awaited)
      late.push_back({{"rank", one.rank}, {"caused_waiting_seconds", seconds(one.waiting_ns)}});
    return {{"frames", to_array(site.frames)}, {"ended", to_array(site.ended)}, {"late_ranks", std::move(late)}};
  });
  list("phases", figures.phases, [](const WeakPhase& phase) -> Json { return {{"name", phase.name}}; });
  Json ages = Json::array();
  for (const WeakAge& age : figures.ages) ages.push_back({{"from", age.from}, {"to", age.to}, {"calls", age.calls}});
  object["ages"] = std::move(ages);
  return object;
}

Json to_object(const ApproxFigures& figures) {
  const bool is_verified = figures.verified > 0;
  return {{"name", figures.name},
          {"places", figures.places},
          {"bound", figures.bound},
          {"sentence", figures.sentence()},
          {"calls", figures.calls},
          {"approximate_calls", figures.approximate},
          {"why_exact", figures.why},
          {"most_staleness", figures.aged > 0 ? Json(figures.most_staleness) : Json(nullptr)},
          {"verified", figures.verified},
          {"median_error", is_verified ? number(figures.median_error) : Json(nullptr)},
          {"largest_error", is_verified ? number(figures.largest_error) : Json(nullptr)}};
}

}  // namespace papaya::report
