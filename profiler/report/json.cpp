// report.json, but for what has a file in json/. The fields are a contract with other programs: add, do not rename.
#include <fmt/format.h>

#include "base/mpi_name.hpp"
#include "profiler/analysis/horovod.hpp"
#include "profiler/report/json/values.hpp"
#include "profiler/report/report.hpp"

namespace papaya::report {
namespace {

constexpr const char* size_names[size_class_count] = {"small", "medium", "large"};

constexpr std::size_t most_last_ranks = 16;
constexpr std::size_t most_stragglers = 16;  // of a call site
constexpr const char* kind_fields[mpi_kind_count] = {
    "point_to_point_seconds", "completion_seconds", "one_sided_seconds",
    "management_seconds",     "io_seconds",         "neighbourhood_seconds"};

// Null where no call was compared: a zero would say that all ranks arrived together.
Json to_object(const Imbalance& imbalance) {
  if (imbalance.calls == 0) return nullptr;
  return {{"calls", imbalance.calls},
          {"worst_us", microseconds(imbalance.worst_ns)},
          {"average_us", microseconds(imbalance.average_ns)},
          {"worst_factor", number(imbalance.worst_factor)},
          {"average_factor", number(imbalance.average_factor)}};
}

Json to_object(const Imbalances& imbalances) {
  Json object = to_object(imbalances.cluster);
  if (!object.is_null()) object["node"] = to_object(imbalances.node);
  return object;
}

Json to_object(const Spread& spread) {
  if (spread.samples == 0) return nullptr;
  return {{"samples", spread.samples},
          {"mean", microseconds(spread.mean_ns)},
          {"p50", microseconds(spread.p50_ns)},
          {"p99", microseconds(spread.p99_ns)},
          {"max", microseconds(spread.max_ns)}};
}

Json to_array(const std::vector<RankRange>& ranges) {
  Json array = Json::array();
  for (const auto& [first, last] : ranges) array.push_back({first, last});
  return array;
}

Json to_object(const CollectiveFigures& figures) {
  Json object = {{"name", figures.name},
                 {"calls", figures.calls},
                 {"bytes", figures.bytes},
                 {"seconds", seconds(figures.ns)},
                 {"imbalance", to_object(figures.imbalance)},
                 {"inside_us", to_object(figures.inside)},
                 {"excess_us", to_object(figures.excess)},
                 {"waiting_seconds", seconds(figures.waiting_ns)},
                 {"waits_for",
                  figures.form == Form::blocking ? wait_names[index_of(wait_kind_of(figures.collective))].field : ""}};
  Json sizes = Json::object();
  for (std::size_t s = 0; s < size_class_count; ++s) {
    const SizeFigures& size = figures.by_size[s];
    sizes[size_names[s]] = {{"calls", size.calls},
                            {"bytes", size.bytes},
                            {"seconds", seconds(size.ns)},
                            {"imbalance", to_object(size.imbalance)}};
  }
  object["by_size"] = std::move(sizes);
  return object;
}

Json to_object(const UsageFigures& usage) {
  if (!usage.is_known) return nullptr;
  Json object = {{"cpu_share", usage.cpu_share},
                 {"core_wait_share", usage.knows_core_wait ? Json(usage.core_wait_share) : Json(nullptr)},
                 {"involuntary_switches_per_s", usage.involuntary_per_s},
                 {"major_faults", usage.major_faults},
                 {"minor_faults", usage.minor_faults},
                 {"peak_bytes", usage.peak_bytes}};
  object["core"] = usage.core >= 0 ? Json(usage.core) : Json(nullptr);
  object["core_ghz"] = usage.core_ghz > 0 ? Json(usage.core_ghz) : Json(nullptr);
  return object;
}

Json to_object(const RankTime& time) {
  if (!time.is_known) return nullptr;
  Json object = {{"before_seconds", seconds(time.before_ns)},
                 {"computing_seconds", seconds(time.computing_ns)},
                 {"unrecorded_seconds", seconds(time.unrecorded_ns)},
                 {"collectives_seconds", seconds(time.collectives_ns)},
                 {"starting_seconds", seconds(time.starting_ns)}};
  for (std::size_t k = 0; k < mpi_kind_count; ++k) object[kind_fields[k]] = seconds(time.of_kind[k]);
  object["finalize_seconds"] = seconds(time.finalize_ns);
  return object;
}

Json to_object(const WhatIf::Served& served) {
  return {{"run_seconds", seconds(served.ns)}, {"algorithm", served.algorithm.empty() ? "native" : served.algorithm}};
}

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

Json to_object(const FunctionFigures& function) {
  return {{"name", function.name},           {"kind", mpi_kind_names[index_of(function.kind)]},
          {"calls", function.calls},         {"seconds", seconds(function.ns)},
          {"most_rank", function.most_rank}, {"most_seconds", seconds(function.most_ns)}};
}

Json to_array(const std::vector<NamedFrame>& frames);

Json to_object(const RankFigures& rank) {
  return {{"rank", rank.rank},
          {"node", rank.node},
          {"times_last", rank.times_last},
          {"calls", rank.compared},
          {"late_us", microseconds(rank.late_ns)},
          {"longest_delay_us", microseconds(rank.largest_delay_ns)},
          {"waited_seconds", seconds(rank.waited_ns)},
          {"waits", by_kind(rank.waited_ns_in)},
          {"caused_waiting_seconds", seconds(rank.caused_ns)},
          {"began_waiting_seconds", seconds(rank.began_ns)},
          {"passed_on_seconds", seconds(rank.passed_on_ns)},
          {"passed_on_from", rank.passed_on_from >= 0 ? Json(rank.passed_on_from) : Json(nullptr)},
          {"unknown_origin_seconds", seconds(rank.unknown_origin_ns)},
          {"waited_in_messages_for", rank.most_waited_for >= 0 ? Json(rank.most_waited_for) : Json(nullptr)},
          {"waited_for_it_seconds", seconds(rank.most_waited_ns)},
          {"late_at", to_array(rank.late_at)},
          {"time", to_object(rank.time)},
          {"usage", to_object(rank.usage)}};
}

Json to_array(const std::vector<NamedFrame>& frames) {
  Json array = Json::array();
  for (const NamedFrame& frame : frames)
    array.push_back({{"module", frame.module},
                     {"offset", fmt::format("{:#x}", frame.offset)},
                     {"build_id", frame.build_id},
                     {"function", frame.function},
                     {"file", frame.file},
                     {"line", frame.line > 0 ? Json(frame.line) : Json(nullptr)}});
  return array;
}

Json to_object(const CostlyCall& call) {
  return {{"name", call.name},
          {"communicator", call.communicator},
          {"call", call.call},
          {"at_seconds", seconds(call.begin_ns)},
          {"rank", call.rank},
          {"late", to_array(call.late)},
          {"waits_alone", call.waits_alone >= 0 ? Json(call.waits_alone) : Json(nullptr)},
          {"longest_delay_us", microseconds(call.delay_ns)},
          {"waiting_seconds", seconds(call.waiting_ns)},
          {"call_site", to_array(call.frames)},
          {"meanwhile", call.meanwhile.calls == 0 ? Json(nullptr)
                                                  : Json({{"name", call.meanwhile.name},
                                                          {"calls", call.meanwhile.calls},
                                                          {"call_site", to_array(call.meanwhile.frames)}})}};
}

Json to_object(const MessageTime& time) {
  return {{"bytes", time.bytes},
          {"node_us", time.node_ns > 0 ? microseconds(time.node_ns) : Json(nullptr)},
          {"cluster_us", time.cluster_ns > 0 ? microseconds(time.cluster_ns) : Json(nullptr)}};
}

Json to_object(const Saving& saving, double span_ns) {
  return {{"rank_seconds", seconds(saving.ranks_ns)},
          {"run_seconds", seconds(saving.run_ns)},
          {"run_share", span_ns > 0 ? number(saving.run_ns / span_ns) : Json(nullptr)}};
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

Json to_object(const NodeTally& tally) {
  return {{"calls", tally.calls},
          {"worst_us", microseconds(tally.worst_ns)},
          {"most_us", microseconds(tally.most_ns)},
          {"waiting_seconds", seconds(tally.waiting_ns)}};
}

Json to_array(const std::vector<WholeRun::Last>& ranks, std::size_t most) {
  Json array = Json::array();
  for (const WholeRun::Last& last : ranks) {
    if (array.size() == most) break;
    array.push_back({{"rank", last.rank},
                     {"node", last.node},
                     {"times_last", last.times_last},
                     {"calls", last.calls},
                     {"caused_waiting_seconds", seconds(last.caused_ns)}});
  }
  return array;
}

Json to_object(const WholeRun& whole, double share) {
  Json object = to_object(whole.all);
  object["given_up"] = whole.given_up;
  object["waiting_share"] = number(share);
  object["late_ranks"] = to_array(whole.last, whole.last.size());
  const auto list = [&](const char* name, const auto& items, auto&& describe) {
    Json array = Json::array();
    for (const auto& item : items) {
      array.push_back(to_object(item.tally));
      describe(array.back(), item);
    }
    object[name] = std::move(array);
  };
  list("call_sites", whole.sites, [](Json& row, const WholeRun::Site& site) {
    row["name"] = mpi_name(site.collective, Form::blocking);
    row["frames"] = to_array(site.frames);
    row["last"] = to_array(site.last, most_last_ranks);
  });
  list("sizes", whole.sizes, [](Json& row, const WholeRun::Size& size) {
    row["name"] = mpi_name(size.collective, Form::blocking);
    row["size"] = size_names[static_cast<std::size_t>(size.size_class)];
  });
  list("communicators", whole.communicators,
       [](Json& row, const WholeRun::Communicator& one) { row["name"] = one.name; });
  return object;
}

Json to_object(const CallSiteFigures& site) {
  Json last = Json::array();
  for (const auto& [rank, times] : site.last) {
    if (last.size() == most_last_ranks) break;
    last.push_back({{"rank", rank}, {"times_last", times}});
  }
  Json stragglers = Json::array();
  for (const Straggler& one : site.pattern.stragglers) {
    if (stragglers.size() == most_stragglers) break;
    stragglers.push_back({{"communicator", fmt::format("{:#x}", one.communicator)}, {"rank", one.rank}});
  }
  const bool is_compared = site.compared > 0;
  return {{"name", site.name},
          {"frames", to_array(site.frames)},
          {"horovod", name_of(horovod_use(site))},
          {"calls", site.calls},
          {"bytes", site.bytes},
          {"seconds", seconds(site.ns)},
          {"compared_calls", site.compared},
          {"worst_us", is_compared ? microseconds(site.worst_ns) : Json(nullptr)},
          {"waiting_seconds", is_compared ? seconds(site.waiting_ns) : Json(nullptr)},
          {"waits_for", site.form == Form::blocking ? wait_names[index_of(wait_kind_of(site.collective))].field : ""},
          {"excess_seconds", is_compared ? seconds(site.excess_ns) : Json(nullptr)},
          {"last", std::move(last)},
          {"pattern", name_of(site.pattern.pattern)},
          {"straggler", site.pattern.straggler() >= 0 ? Json(site.pattern.straggler()) : Json(nullptr)},
          {"stragglers", std::move(stragglers)},
          {"straggler_communicators", site.pattern.stragglers.size()},
          {"predictability", site.pattern.predictability ? number(*site.pattern.predictability) : Json(nullptr)},
          {"uneven_calls", site.pattern.imbalanced},
          {"savings", to_object(site.savings)}};
}

Json to_object(const PhaseFigures& phase) {
  const bool is_compared = phase.compared > 0;
  return {{"name", phase.name},
          {"calls", phase.calls},
          {"seconds", seconds(phase.ns)},
          {"compared_calls", phase.compared},
          {"worst_us", is_compared ? microseconds(phase.worst_ns) : Json(nullptr)},
          {"waiting_seconds", is_compared ? seconds(phase.waiting_ns) : Json(nullptr)},
          {"excess_seconds", is_compared ? seconds(phase.excess_ns) : Json(nullptr)},
          {"ranks", phase.ranks},
          {"entered", phase.entered},
          {"longest_seconds", seconds(phase.longest_ns)},
          {"efficiency", to_object(phase.efficiency)}};
}

Json to_object(const CommunicatorFigures& figures) {
  return {{"name", figures.name},
          {"id", fmt::format("{:#x}", figures.id)},  // JSON numbers hold 53 bits only
          {"size", figures.size},
          {"calls", figures.calls},
          {"compared_calls", figures.compared},
          {"efficiency", to_object(figures.efficiency)},
          {"worst_us", figures.compared > 0 ? microseconds(figures.worst_ns) : Json(nullptr)},
          {"waiting_seconds", seconds(figures.waiting_ns)}};
}

Json to_object(const LastSign& sign) {
  Json object = {{"rank", sign.rank}};
  if (sign.name.empty()) return object;
  object.update({{"name", sign.name},
                 {"communicator", sign.communicator},
                 {"call", sign.call},
                 {"inside", sign.inside},
                 {"unix_seconds", seconds(static_cast<double>(sign.unix_ns))},
                 {"call_site", to_array(sign.call_site)}});
  return object;
}

Json to_object(const PendingCall& pending) {
  Json last = Json::array();
  for (const LastSign& sign : pending.last_signs) last.push_back(to_object(sign));
  return {{"name", pending.name},
          {"communicator", pending.communicator},
          {"call", pending.call},
          {"inside", to_array(pending.inside)},
          {"not_arrived", to_array(pending.not_arrived)},
          {"unknown_not_arrived", pending.unknown_not_arrived},
          {"waited_seconds", seconds(pending.waited_ns)},
          {"call_site", to_array(pending.call_site)},
          {"last_signs", std::move(last)},
          {"conflict", pending.conflict}};
}

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

Json to_object(const WrongResult& one) {
  return {{"name", one.name},          {"algorithm", one.algorithm}, {"communicator", one.communicator},
          {"call", one.call},          {"rank", one.rank},           {"element", one.element},
          {"value", one.value},        {"mpi_value", one.mpi_value}, {"dropped", one.is_dropped},
          {"sentence", one.sentence()}};
}

Json to_object(const Report& report) {
  Json object = {{"program", report.program},
                 {"command", report.command},
                 {"mpi", report.mpi},
                 {"papaya", report.papaya_version},
                 {"ranks", report.ranks},
                 {"ranks_read", report.ranks_read},
                 {"nodes", report.nodes},
                 {"cores", report.cores},
                 {"ranks_share_cores", report.crowded_ranks > 0},
                 {"begin_unix_seconds", seconds(static_cast<double>(report.begin_unix_ns))},
                 {"run_seconds", seconds(report.run_ns)},
                 {"finalized", report.finalized},
                 {"partial", report.partial},
                 {"verdict", report.verdict},
                 {"in_short", report.in_short},
                 {"next", report.next},
                 {"notes", report.notes},
                 {"clock_error_us", report.clock_measured ? microseconds(report.clock_error_ns) : Json(nullptr)},
                 {"clock_bound_us", report.clock_measured ? microseconds(report.clock_bound_ns) : Json(nullptr)},
                 {"alpha_nominal", report.alpha_nominal},
                 {"horovod", report.horovod_library},
                 {"waiting_seconds", seconds(report.waiting_ns)},
                 {"waiting_share", number(report.waiting_share)},
                 {"waits", to_array(report.waits)},
                 {"compared_calls", report.compared_calls},
                 {"unrecorded_calls", report.unrecorded_calls},
                 {"savings", to_object(report.savings)},
                 {"events", {{"begun", report.events_begun}, {"kept", report.events_kept}}}};
  Json settings = Json::object();
  for (const Setting& setting : report.settings) settings[setting.name] = setting.value;
  object["settings"] = std::move(settings);

  const auto list = [&](const char* name, const auto& items) {
    Json array = Json::array();
    for (const auto& item : items) array.push_back(to_object(item));
    object[name] = std::move(array);
  };
  list("collectives", report.collectives);
  list("message_times", report.message_times);
  list("late_ranks", report.late_ranks);
  list("costly_calls", report.costly_calls);
  list("functions", report.functions);
  object["efficiency"] = to_object(report.efficiency);
  object["recorded_efficiency"] = to_object(report.recorded_efficiency);
  object["what_if"] = to_object(report.what_if, report.call_sites);
  object["what_if_unknown"] = report.what_if.why_unknown;
  list("call_sites", report.call_sites);
  list("phases", report.phases);
  list("weak_collectives", report.weak);
  list("approximate", report.approx);
  list("wrong_results", report.wrong_results);
  object["whole_run"] = to_object(report.whole_run, report.whole_run_share);
  list("pending", report.pending);

  Json algorithms = Json::array();
  for (const AlgorithmFigures& row : report.algorithms) {
    algorithms.push_back(
        {{"collective", row.collective}, {"algorithm", row.algorithm}, {"calls", row.calls}, {"reason", row.reason}});
  }
  object["algorithms"] = std::move(algorithms);

  list("trials", report.trials);

  list("communicators", report.communicators);

  Json nodes = Json::array();
  for (const NodeFigures& node : report.node_figures) {
    nodes.push_back({{"node", node.node}, {"host", node.host}, {"ranks", to_array(node.ranks)}});
  }
  object["hosts"] = std::move(nodes);
  return object;
}

}  // namespace

std::string to_json(const Report& report) noexcept {
  try {
    return to_object(report).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  } catch (...) {
    return {};  // out of memory
  }
}

}  // namespace papaya::report
