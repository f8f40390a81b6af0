// What TALP of DLB writes to FILE.json of DLB_ARGS="--talp --talp-output-file=FILE.json", so that its readers
// (TALP-Pages) take papaya's figures. The fields are those of DLB 3.5, by whose number readers tell the layout; 3.6
// adds some for GPUs. A region for the run, "Global", and one for each phase; times are whole nanoseconds. What papaya
// does not count (instructions, OpenMP) is 0, which is how TALP writes what it has not measured. Calls are all that
// were timed, in a phase its collectives in the record, as other functions are not counted by phase. The time that has
// elapsed is that of the efficiencies: without what recording was switched off for, on all ranks.
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "profiler/report/report.hpp"

namespace papaya::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* global_region = "Global";  // the run's

// A phase, or the run.
struct Region {
  std::uint64_t ranks = 0;
  std::uint64_t measurements = 0;
  std::uint64_t mpi_calls = 0;
  const Efficiency& efficiency;
};

std::uint64_t whole(double ns) {
  return ns > 0 ? static_cast<std::uint64_t>(std::llround(ns)) : 0;
}

Json to_object(const Region& region, std::int32_t nodes) {
  const Efficiency& one = region.efficiency;
  const double rank_ns = static_cast<double>(region.ranks) * one.of_ns;
  const double useful_ns = one.parallel * rank_ns;
  // By time for each CPU, which is a rank here: "Normd".
  const double useful_most_ns = one.communication * one.of_ns;
  return {{"numCpus", region.ranks},
          {"numMpiRanks", region.ranks},
          {"numNodes", nodes},
          {"avgCpus", static_cast<double>(region.ranks)},
          {"cycles", 0.0},
          {"instructions", 0.0},
          {"numMeasurements", region.measurements},
          {"numMpiCalls", region.mpi_calls},
          {"numOmpParallels", 0},
          {"numOmpTasks", 0},
          {"elapsedTime", whole(one.of_ns)},
          {"usefulTime", whole(useful_ns)},
          {"mpiTime", whole(rank_ns - useful_ns)},
          {"ompLoadImbalanceTime", 0},
          {"ompSchedulingTime", 0},
          {"ompSerializationTime", 0},
          {"usefulNormdApp", whole(one.parallel * one.of_ns)},
          {"mpiNormdApp", whole(one.of_ns - one.parallel * one.of_ns)},
          {"maxUsefulNormdProc", whole(useful_most_ns)},
          {"maxUsefulNormdNode", whole(one.balance_within_nodes * useful_most_ns)},
          {"mpiNormdOfMaxUseful", whole(one.of_ns - useful_most_ns)},
          {"parallelEfficiency", one.parallel},
          {"mpiParallelEfficiency", one.parallel},
          {"mpiCommunicationEfficiency", one.communication},
          {"mpiLoadBalance", one.load_balance},
          {"mpiLoadBalanceIn", one.balance_within_nodes},
          {"mpiLoadBalanceOut", one.balance_between_nodes},
          {"ompParallelEfficiency", 1.0},
          {"ompLoadBalance", 1.0},
          {"ompSchedulingEfficiency", 1.0},
          {"ompSerializationEfficiency", 1.0}};
}

std::string time_of(std::int64_t unix_ns) {
  const auto seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  std::tm utc{};
  char text[32] = "";
  if (gmtime_r(&seconds, &utc) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace

std::string to_talp(const Report& report) noexcept {
  try {
    if (!report.efficiency.is_known) return {};
    std::uint64_t calls = 0;
    for (const CollectiveFigures& figures : report.collectives) calls += figures.calls;
    for (const FunctionFigures& function : report.functions) calls += function.calls;
    const auto ranks = static_cast<std::uint64_t>(report.ranks);
    Json regions = Json::object();
    regions[global_region] = to_object({ranks, ranks, calls, report.efficiency}, report.nodes);
    for (const PhaseFigures& phase : report.phases)
      if (!phase.name.empty() && phase.name != global_region && phase.efficiency.is_known)
        regions[phase.name] = to_object({phase.ranks, phase.entered, phase.calls, phase.efficiency}, report.nodes);
    const Json object = {{"dlbVersion", "3.5.0"},
                         {"dlbGitVersion", "papaya " + report.papaya_version},
                         {"timestamp", time_of(report.begin_unix_ns)},
                         {"resources", {{"numCpus", ranks}, {"numNodes", report.nodes}, {"numMpiRanks", ranks}}},
                         {"Application", std::move(regions)}};
    return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  } catch (...) {
    return {};  // out of memory
  }
}

}  // namespace papaya::report
