// What it would bring if ranks were quicker, or calls.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "profiler/read/units.hpp"
#include "profiler/report/text/layout.hpp"
#include "profiler/report/text/sections.hpp"

namespace papaya::report {
namespace {

constexpr std::size_t most_savings_listed = 5;
constexpr double least_saving = 0.01;  // of the run
constexpr std::size_t most_relieved_listed = 3;
constexpr std::size_t widest_algorithms = 28;  // "arrival_leader, arrival_tree"

// "1.2 s, 3.4%", of the run; "-" where it is not known or nothing.
std::string saving_text(const Saving& saving, double span_ns) {
  if (!std::isfinite(saving.run_ns) || saving.run_ns <= 0) return "-";
  return fmt::format("{}, {:.1f}%", time_text(saving.run_ns), 100 * share_of(saving.run_ns, span_ns));
}

const CallSiteFigures* site_of(const Analysis& analysis, std::size_t number) {
  for (const CallSiteFigures& site : analysis.call_sites)
    if (site.number == number) return &site;
  return nullptr;
}

// Why lateness is counted for less than it is.
std::string relieved_text(const Analysis& analysis) {
  std::string page;
  for (std::size_t i = 0; i < std::min(most_relieved_listed, analysis.what_if.relieved.size()); ++i) {
    const Relieved& one = analysis.what_if.relieved[i];
    const CallSiteFigures* const site = site_of(analysis, one.site);
    if (site == nullptr || one.cost_share >= strong_relief ||
        one.lateness_ns * static_cast<double>(one.late_calls) < least_saving * analysis.run_ns)
      continue;
    page += wrap(fmt::format("Before {} at {} a rank computes {} longer than the others {} times, but that makes these "
                             "calls only {} of it later than the calls without: the others compute shorter then, so "
                             "no more of it is counted.",
                             site->name, call_site_text(site->frames), time_text(one.lateness_ns),
                             count_text(one.late_calls), share_text(one.cost_share)),
                 "  ", 2);
  }
  return page;
}

}  // namespace

// What it would bring if ranks were as quick as the others.
std::string what_if_text(const Analysis& analysis) {
  const WhatIf& what_if = analysis.what_if;
  const double least_ns = least_saving * analysis.run_ns;
  if (!what_if.is_known) {
    if (analysis.crowded_ranks == 0 || analysis.waiting_ns < least_saving * analysis.recorded_ns) return {};
    return "\n" + wrap("What quicker ranks would bring is not foretold: " + what_if.why_unknown, "", 2);
  }
  const std::string relieved = relieved_text(analysis);
  if (what_if.all_ns < least_ns) return relieved.empty() ? relieved : "\n" + relieved;
  Table table(fmt::format("What if (an estimate of the run, if ranks computed no longer between their calls than the "
                          "median of the ranks; it takes {}. With an algorithm: one of papaya's as well, where such "
                          "calls were left to MPI. Of calls that ranks make from several lines: that of the lowest)",
                          time_text(analysis.run_ns)),
              1, {"quicker", "run", "shorter by", "of the run", "with an algorithm", "which"}, true);
  const auto add = [&](std::string who, double ns, const WhatIf::Served* served, std::vector<std::string> below) {
    const bool has_algorithm = served != nullptr && served->ns - ns >= least_ns;
    const std::string& which = served == nullptr ? std::string() : served->algorithm;
    table.add({std::move(who), time_text(analysis.run_ns - ns), time_text(ns), share_bar(share_of(ns, analysis.run_ns)),
               has_algorithm ? time_text(analysis.run_ns - served->ns) : "-",
               has_algorithm       ? (which.size() <= widest_algorithms ? which : "several")
               : served != nullptr ? "native"
                                   : "-"},
              std::move(below));
  };
  add("all ranks", what_if.all_ns, &what_if.all_served, {});
  for (std::size_t i = 0; i < std::min(most_savings_listed, what_if.ranks.size()); ++i)
    if (what_if.ranks[i].ns >= least_ns)
      add(fmt::format("rank {}", what_if.ranks[i].rank), what_if.ranks[i].ns, nullptr, {});
  for (const WhatIf::Site& site : what_if.sites)
    if (const CallSiteFigures* const figures = site_of(analysis, site.number);
        figures != nullptr && site.ns >= least_ns)
      add("all, before " + figures->name, site.ns, &site.served, {call_site_text(figures->frames)});
  return table.text() + relieved;
}

std::string savings_text(const Analysis& analysis) {
  Table table(
      fmt::format("Estimated savings (the recorded arrivals replayed, with the same work between calls. "
                  "Excess: summed over ranks. {} shorter: without any excess, and by the papaya algorithm that a "
                  "model of the measured message times finds best, in the calls that were left to MPI. Of calls that "
                  "ranks make from several lines: that of the lowest)",
                  analysis.is_overwritten ? "The recorded part of the run" : "Run"),
      1, {"call", "excess", "run shorter without", "by an algorithm", "which"}, true);
  const auto add = [&](const std::string& name, const Savings& savings, std::vector<std::string> below) {
    const Savings::Candidate* const best = savings.best();
    table.add({name, time_text(savings.no_excess.ranks_ns), saving_text(savings.no_excess, savings.span_ns),
               best == nullptr ? "-" : saving_text(best->saving, savings.span_ns),
               best != nullptr          ? (best->algorithm.size() <= widest_algorithms ? best->algorithm : "several")
               : savings.open_calls > 0 ? "native"
                                        : "-"},
              std::move(below));
  };
  if (analysis.savings.calls == 0) return {};
  add("all", analysis.savings, {});
  std::vector<const CallSiteFigures*> sites;
  for (const CallSiteFigures& site : analysis.call_sites)
    if (site.savings.calls > 0) sites.push_back(&site);
  std::stable_sort(sites.begin(), sites.end(), [](const auto* a, const auto* b) {
    return a->savings.no_excess.ranks_ns > b->savings.no_excess.ranks_ns;
  });
  const std::size_t listed = std::min(sites.size(), most_savings_listed);
  for (std::size_t i = 0; i < listed; ++i) add(sites[i]->name, sites[i]->savings, {call_site_text(sites[i]->frames)});
  std::string page = table.text();
  if (sites.size() > listed) page += fmt::format("  and {} more, in report.json\n", sites.size() - listed);
  return page;
}

}  // namespace papaya::report
