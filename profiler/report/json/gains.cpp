// What would make the run shorter.
#include <algorithm>

#include "profiler/report/json/values.hpp"

namespace papaya::report {
namespace {

Json to_object(const WhatIf::Served& served) {
  return {{"run_seconds", seconds(served.ns)}, {"algorithm", served.algorithm.empty() ? "native" : served.algorithm}};
}

Json to_object(const Saving& saving, double span_ns) {
  return {{"rank_seconds", seconds(saving.ranks_ns)},
          {"run_seconds", seconds(saving.run_ns)},
          {"run_share", span_ns > 0 ? number(saving.run_ns / span_ns) : Json(nullptr)}};
}

}  // namespace

Json to_object(const WhatIf& what_if, const std::vector<CallSiteFigures>& call_sites) {
  if (!what_if.is_known) return nullptr;
  const auto place_of = [&](std::size_t number) {
    return std::find_if(call_sites.begin(), call_sites.end(),
                        [number](const CallSiteFigures& site) { return site.number == number; }) -
           call_sites.begin();
  };
  Json ranks = Json::array();
  for (const WhatIf::Rank& rank : what_if.ranks)
    ranks.push_back({{"rank", rank.rank}, {"run_seconds", seconds(rank.ns)}});
  Json sites = Json::array();
  for (const WhatIf::Site& site : what_if.sites)
    sites.push_back({{"call_site", place_of(site.number)},
                     {"run_seconds", seconds(site.ns)},
                     {"with_algorithm", to_object(site.served)}});
  Json relieved = Json::array();
  for (const Relieved& one : what_if.relieved)
    relieved.push_back({{"call_site", place_of(one.site)},
                        {"late_calls", one.late_calls},
                        {"lateness_us", microseconds(one.lateness_ns)},
                        {"cost_share", number(one.cost_share)}});
  return {{"all_run_seconds", seconds(what_if.all_ns)},
          {"all_with_algorithm", to_object(what_if.all_served)},
          {"ranks", std::move(ranks)},
          {"call_sites", std::move(sites)},
          {"relieved", std::move(relieved)}};
}

Json to_object(const Savings& savings) {
  if (savings.calls == 0) return nullptr;
  Json candidates = Json::array();
  for (const Savings::Candidate& one : savings.candidates) {
    candidates.push_back(to_object(one.saving, savings.span_ns));
    candidates.back()["algorithm"] = one.algorithm;
  }
  const Savings::Candidate* const best = savings.best();
  const bool known = !savings.candidates.empty();
  return {{"calls", savings.calls},
          {"open_calls", savings.open_calls},
          {"no_excess", to_object(savings.no_excess, savings.span_ns)},
          {"best", !known ? Json(nullptr) : Json(best == nullptr ? "native" : best->algorithm)},
          {"candidates", std::move(candidates)}};
}

}  // namespace papaya::report
