// report.json, but for what has a file in json/. The fields are a contract with other programs: add, do not rename.
#include <fmt/format.h>

#include "profiler/analysis/horovod.hpp"
#include "profiler/report/json/values.hpp"
#include "profiler/report/report.hpp"

namespace papaya::report {
namespace {

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

Json to_object(const FunctionFigures& function) {
  return {{"name", function.name},           {"kind", mpi_kind_names[index_of(function.kind)]},
          {"calls", function.calls},         {"seconds", seconds(function.ns)},
          {"most_rank", function.most_rank}, {"most_seconds", seconds(function.most_ns)}};
}

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
