// POP's efficiencies: formulas, phases, communicators, the critical path, and TALP's output.
#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>

#include "profiler/analysis/rank_times.hpp"
#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

using report::Report;
using support::contains;
using support::Record;

TEST_CASE("efficiencies: POP's efficiencies, and TALP's within and between nodes") {
  // Useful times 40, 60 on node 0 and 80, 20 on node 1, of 100 ms.
  auto all = support::records(4);
  const double useful[] = {40e6, 60e6, 80e6, 20e6};
  for (int rank = 0; rank < 4; ++rank) {
    all[rank].header.node = rank / 2;
    all[rank].header.nodes = 2;
    all[rank].add_timed("MPI_Recv", MpiKind::point_to_point, 1, 100e6 - useful[rank]);
    all[rank].finalize(100e6);
  }
  const report::Efficiency efficiency = support::analyse(all).efficiency;
  REQUIRE(efficiency.is_known);
  CHECK(efficiency.parallel == Approx(0.5));
  CHECK(efficiency.load_balance == Approx(50.0 / 80));
  CHECK(efficiency.communication == Approx(0.8));
  CHECK(efficiency.balance_within_nodes == Approx(100.0 * 2 / (80 * 4)));
  CHECK(efficiency.balance_between_nodes == Approx(200.0 / (100 * 2)));
  CHECK(efficiency.parallel == Approx(efficiency.load_balance * efficiency.communication));
  CHECK(efficiency.load_balance == Approx(efficiency.balance_within_nodes * efficiency.balance_between_nodes));
  // One rank's other calls were not timed.
  all[3].timed.clear();
  const Report partly = support::analyse(all);
  CHECK(!partly.efficiency.is_known);
  CHECK(contains(report::to_json(partly), "\"efficiency\": null"));
  CHECK(!contains(report::to_text(partly), "Parallel efficiency"));
}

TEST_CASE("efficiencies: POP's products hold for published values") {
  // OTF-CPT's, of one code: load balance 0.919, communication 0.334, serialisation 0.541, transfer 0.617, parallel
  // 0.307.
  const report::Useful ranks[] = {{1e9, 0}, {0.919e9, 0}, {0.838e9, 0}};
  const double run_ns = 1e9 / 0.334;
  report::Efficiency efficiency = report::efficiency_of(ranks, run_ns);
  report::add_transfer(efficiency, run_ns, 1e9 / 0.541);
  CHECK(efficiency.load_balance == Approx(0.919));
  CHECK(efficiency.communication == Approx(0.334));
  CHECK(efficiency.serialisation == Approx(0.541));
  CHECK(efficiency.transfer == Approx(0.617).margin(0.0005));
  CHECK(efficiency.parallel == Approx(0.307).margin(0.0005));
  CHECK(efficiency.serialisation * efficiency.transfer == Approx(efficiency.communication));
  CHECK(efficiency.load_balance * efficiency.communication == Approx(efficiency.parallel));
}

TEST_CASE("efficiencies: efficiencies of phases and communicators") {
  auto all = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    Record& record = all[rank];
    record.header.phase_count = 3;
    std::copy_n("solve", 6, record.header.phase_names[1]);
    std::copy_n("output", 7, record.header.phase_names[2]);
    const auto in_phase = [&](int phase, std::uint64_t entered, double ns, double mpi_ns) {
      record.header.phase_times[phase] = {entered, Record::ticks(ns) - support::origin_ticks,
                                          Record::ticks(mpi_ns) - support::origin_ticks};
    };
    in_phase(0, 0, 10e6, 0);
    in_phase(1, 5, 80e6 + 1e6 * rank, 20e6 * rank + 1e6 * rank);  // computes 80, 60, 40, 20 of 83 ms
    if (rank < 2) in_phase(2, 1, 8e6, 4e6);
    record.add_timed("MPI_Recv", MpiKind::point_to_point, 1, 20e6 * rank);
    record.add_communicator(7 + rank / 2, 2, rank % 2, rank < 2 ? "low" : "high");
    record.add_call(Collective::barrier, 0, 98e6, 98e6, 0, -1, 7 + rank / 2);
    record.finalize(100e6);
  }
  const Report analysis = support::analyse(all);
  const auto phase = [&](const std::string& name) -> const report::PhaseFigures& {
    return *std::find_if(analysis.phases.begin(), analysis.phases.end(), [&](auto& one) { return one.name == name; });
  };
  const report::PhaseFigures& solve = phase("solve");
  CHECK(solve.ranks == 4);
  CHECK(solve.entered == 20);
  CHECK(solve.longest_ns == Approx(83e6));
  CHECK(solve.efficiency.load_balance == Approx(50.0 / 80));
  CHECK(solve.efficiency.communication == Approx(80.0 / 83));
  CHECK(solve.efficiency.parallel == Approx(50.0 / 83));
  const report::PhaseFigures& output = phase("output");
  CHECK(output.ranks == 2);
  CHECK(output.efficiency.parallel == Approx(0.5));
  CHECK(output.efficiency.load_balance == Approx(1.0));
  // Ranks 2 and 3 compute 60 and 40 ms.
  const auto high = std::find_if(analysis.communicators.begin(), analysis.communicators.end(),
                                 [](const auto& one) { return one.name == "high"; });
  REQUIRE(high != analysis.communicators.end());
  CHECK(high->efficiency.load_balance == Approx(50.0 / 60));
  CHECK(high->efficiency.parallel == Approx(0.5));
  const std::string text = report::to_text(analysis);
  CHECK(contains(text, "solve"));
  CHECK(contains(text, "Efficiencies of phases and communicators"));
  CHECK(contains(report::to_json(analysis), "\"longest_seconds\": 0.083"));
  // The products hold in TALP's output, and so do the times that they are made from.
  const auto talp = nlohmann::json::parse(report::to_talp(analysis));
  REQUIRE(talp["Application"].size() == 3);
  for (const auto& region : talp["Application"]) {
    const auto value = [&](const char* name) { return region[name].get<double>(); };
    CHECK(value("parallelEfficiency") == Approx(value("mpiLoadBalance") * value("mpiCommunicationEfficiency")));
    CHECK(value("mpiLoadBalance") == Approx(value("mpiLoadBalanceIn") * value("mpiLoadBalanceOut")));
    CHECK(value("parallelEfficiency") == Approx(value("usefulTime") / (value("usefulTime") + value("mpiTime"))));
    CHECK(value("usefulTime") + value("mpiTime") == Approx(value("elapsedTime") * value("numMpiRanks")));
  }
  CHECK(talp["Application"]["Global"]["elapsedTime"] == 100'000'000);
  CHECK(talp["Application"]["Global"]["parallelEfficiency"].get<double>() == Approx(0.7));
  CHECK(talp["Application"]["solve"]["usefulTime"] == 200'000'000);
  // Of one rank other calls were not timed.
  all[0].timed.clear();
  const Report partly = support::analyse(all);
  for (const auto& one : partly.phases) CHECK(!one.efficiency.is_known);
  CHECK(report::to_talp(partly).empty());
  CHECK(contains(report::to_text(partly), "-: not known: not all of MPI's functions were timed"));
}

TEST_CASE("efficiencies: phases whose names read alike are one") {
  auto all = support::records(2);
  for (Record& record : all) {
    record.header.phase_count = 3;
    std::copy_n("a b", 4, record.header.phase_names[1]);
    std::copy_n("a\tb", 4, record.header.phase_names[2]);
    for (const int phase : {1, 2}) record.header.phase_times[phase] = {1, Record::ticks(1e6) - Record::ticks(0), 0};
    for (std::uint64_t call = 0; call < 4; ++call)
      record
          .add_call(Collective::allreduce, call, 0.5e6 * static_cast<double>(call + 1),
                    0.5e6 * static_cast<double>(call + 1) + 10)
          .phase = static_cast<std::uint16_t>(1 + call / 2);
    record.add_timed("MPI_Recv", MpiKind::point_to_point, 1, 0);
    record.finalize(2.1e6);
  }
  const Report report = support::analyse(all);
  const auto phase = std::find_if(report.phases.begin(), report.phases.end(),
                                  [](const report::PhaseFigures& one) { return one.name == "a b"; });
  REQUIRE(phase != report.phases.end());
  CHECK(phase->longest_ns == Approx(2e6));
  CHECK(phase->entered == 4);
  CHECK(phase->efficiency.parallel == Approx(1));
  CHECK(phase->efficiency.transfer == Approx(1));
}

TEST_CASE("efficiencies: communicators with long names are told apart") {
  auto all = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    all[rank].add_communicator(7 + rank / 2, 2, rank % 2, "");
    all[rank].communicators.back().parent_id = support::world_id;
    all[rank].communicators.back().origin = static_cast<std::int32_t>(trace::Origin::split);
    all[rank].add_timed("MPI_Recv", MpiKind::point_to_point, 1, 20e6 * rank);
    all[rank].add_call(Collective::barrier, 0, 98e6, 98e6, 0, -1, 7 + rank / 2);
    all[rank].finalize(100e6);
  }
  const std::string text = report::to_text(support::analyse(all));
  const std::string rows = text.substr(text.find("Efficiencies of phases and communicators"));
  CHECK(contains(rows, "split of MPI_COM..., ranks 0-1 "));
  CHECK(contains(rows, "split of MPI_COM..., ranks 2-3 "));
}

TEST_CASE("efficiencies: TALP's output has the fields of DLB 3.5, in their order") {
  auto all = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    all[rank].header.node = rank / 2;
    all[rank].header.nodes = 2;
    all[rank].add_timed("MPI_Recv", MpiKind::point_to_point, 1, 20e6 * rank);
    all[rank].finalize(100e6);
  }
  const auto talp = nlohmann::ordered_json::parse(report::to_talp(support::analyse(all)));
  const auto fields_of = [](const nlohmann::ordered_json& object) {
    std::string fields;
    for (const auto& [name, value] : object.items()) fields += name + " ";
    return fields;
  };
  CHECK(fields_of(talp) == "dlbVersion dlbGitVersion timestamp resources Application ");
  CHECK(talp["dlbVersion"].get<std::string>().rfind("3.5", 0) == 0);  // by which TALP-Pages chooses its reader
  CHECK(fields_of(talp["resources"]) == "numCpus numNodes numMpiRanks ");
  CHECK(talp["resources"]["numNodes"] == 2);
  const auto& region = talp["Application"]["Global"];
  CHECK(fields_of(region) ==
        "numCpus numMpiRanks numNodes avgCpus cycles instructions numMeasurements numMpiCalls numOmpParallels "
        "numOmpTasks elapsedTime usefulTime mpiTime ompLoadImbalanceTime ompSchedulingTime ompSerializationTime "
        "usefulNormdApp mpiNormdApp maxUsefulNormdProc maxUsefulNormdNode mpiNormdOfMaxUseful parallelEfficiency "
        "mpiParallelEfficiency mpiCommunicationEfficiency mpiLoadBalance mpiLoadBalanceIn mpiLoadBalanceOut "
        "ompParallelEfficiency ompLoadBalance ompSchedulingEfficiency ompSerializationEfficiency ");
  // Useful 100, 80 and 60, 40 of 100 ms.
  CHECK(region["usefulNormdApp"] == 70'000'000);
  CHECK(region["mpiNormdApp"] == 30'000'000);
  CHECK(region["maxUsefulNormdProc"] == 100'000'000);
  CHECK(region["maxUsefulNormdNode"] == 90'000'000);
  CHECK(region["mpiNormdOfMaxUseful"] == 0);
}

// Calls of both ranks, `computes(rank, call)` ms after they left the one before, in `inside` ms after the last.
std::vector<Record> chained(Collective collective, int calls, double inside_ms, int root,
                            const std::function<double(int, int)>& computes) {
  auto all = support::records(2);
  std::array<double, 2> now{};
  for (int call = 0; call < calls; ++call) {
    std::array<double, 2> arrival{};
    for (int rank = 0; rank < 2; ++rank) arrival[rank] = now[rank] + computes(rank, call) * 1e6;
    for (int rank = 0; rank < 2; ++rank) {
      const int awaited = 1 - rank;
      const bool waits = root < 0 || awaited == root;  // a bcast's, else all wait for all
      now[rank] = (waits ? std::max(arrival[0], arrival[1]) : arrival[rank]) + inside_ms * 1e6;
      if (root >= 0 && rank == root) now[rank] = arrival[rank] + inside_ms * 1e6;
      all[rank].add_call(collective, static_cast<std::uint64_t>(call), arrival[rank], now[rank], 8, root);
    }
  }
  for (int rank = 0; rank < 2; ++rank) {
    all[rank].capacity = 64;
    all[rank].add_timed("MPI_Send", MpiKind::point_to_point, 0, 0);
    all[rank].finalize(now[rank]);
  }
  return all;
}

TEST_CASE("critical path: who may leave early does not wait on an ideal network") {
  // A root of bcasts that computes 6, then 1 ms in turn, a receiver that computes 1, then 6: it never waits for it but
  // at the first call. The chain is 6 + 10 x 3.5.
  const auto computes = [](int rank, int call) { return (rank == 0) == (call % 2 == 0) ? 6.0 : 1.0; };
  const Report rooted = support::analyse(chained(Collective::bcast, 10, 0.5, 0, computes));
  // Root: 6,7,13,14,20.. computing; receiver: max(1, 6)=6, 12, 13, 19...
  REQUIRE(rooted.efficiency.knows_transfer);
  double root = 0;
  double receiver = 0;
  for (int call = 0; call < 10; ++call) {
    root += computes(0, call);
    receiver = std::max(receiver + computes(1, call), root);
  }
  CHECK(rooted.efficiency.transfer == Approx(receiver * 1e6 / rooted.run_ns));
  CHECK(rooted.efficiency.serialisation == Approx(35.0 / receiver));
  // In a barrier both wait: each call is one after the other's longest.
  const Report barrier = support::analyse(chained(Collective::barrier, 10, 0.5, -1, computes));
  CHECK(barrier.efficiency.transfer == Approx(60.0 / 65));
  CHECK(barrier.efficiency.serialisation == Approx(35.0 / 60));
  CHECK(barrier.efficiency.serialisation * barrier.efficiency.transfer == Approx(barrier.efficiency.communication));
}

TEST_CASE("critical path: of a ring that has lost the beginning, between the first and last call that it holds") {
  auto all = chained(Collective::barrier, 32, 1, -1, [](int rank, int call) { return rank == call % 2 ? 9.0 : 3.0; });
  for (Record& record : all) {
    record.capacity = 16;
    record.events.erase(record.events.begin(), record.events.begin() + 16);
    record.header.event_count = 32;
  }
  const Report analysis = support::analyse(all);
  CHECK(!analysis.efficiency.knows_transfer);
  REQUIRE(analysis.recorded_efficiency.span_ns == Approx(150e6));  // 15 calls of 10 ms
  // 15 calls, of which rank 0 computes 9 ms in 7 or 8.
  const report::Efficiency& part = analysis.recorded_efficiency.of_part;
  CHECK(part.transfer == Approx(0.9));
  CHECK(part.communication == Approx((8 * 9 + 7 * 3) / 150.0));
  CHECK(part.serialisation == Approx((8 * 9 + 7 * 3) / 135.0));
  CHECK(contains(report::to_text(analysis), "In the last 150 ms of the run"));
  CHECK(contains(report::to_json(analysis), "\"recorded_efficiency\": {"));
  // Calls are missing in the middle: nobody knows.
  all[1].events.erase(all[1].events.begin() + 5);
  CHECK(support::analyse(all).recorded_efficiency.span_ns == 0);
}

void set_phase(Record& record, int phase, const char* name, double ns, double mpi_ns) {
  std::copy_n(name, std::char_traits<char>::length(name) + 1, record.header.phase_names[phase]);
  record.header.phase_count = std::max<std::uint64_t>(record.header.phase_count, static_cast<std::uint64_t>(phase) + 1);
  record.header.phase_times[phase] = {1, Record::ticks(ns) - support::origin_ticks,
                                      Record::ticks(mpi_ns) - support::origin_ticks};
}

TEST_CASE("critical path: of a phase, its waiting on an ideal network is that of its own calls") {
  // Late in turn by 6 ms in "turns", not at all in "level"; then nothing is called in "alone".
  auto all = chained(Collective::barrier, 24, 1, -1, [](int rank, int call) {
    return call >= 10 ? 4.0 : rank == call % 2 ? 9.0 : 3.0;
  });
  for (Record& record : all) {
    for (std::size_t call = 0; call < 24; ++call) record.events[call].phase = call < 10 ? 1 : 2;
    set_phase(record, 1, "turns", 100e6, 40e6);
    set_phase(record, 2, "level", 70e6, 14e6);
    set_phase(record, 3, "alone", 20e6, 0);
    record.finalize(190e6);
  }
  const Report analysis = support::analyse(all);
  const auto phase = [&](const std::string& name) -> const report::Efficiency& {
    return std::find_if(analysis.phases.begin(), analysis.phases.end(), [&](auto& one) { return one.name == name; })
        ->efficiency;
  };
  REQUIRE(phase("turns").knows_transfer);
  CHECK(phase("turns").communication == Approx(0.6));
  CHECK(phase("turns").transfer == Approx(0.9));
  CHECK(phase("turns").serialisation == Approx(60.0 / 90));
  CHECK(phase("level").transfer == Approx(0.8));
  CHECK(phase("level").serialisation == Approx(1.0));
  CHECK(phase("alone").transfer == Approx(1.0));
  CHECK(analysis.efficiency.transfer == Approx(166.0 / 190));
  CHECK(contains(report::to_text(analysis), "= serialisation"));
  // The program had switched recording off for a while: a time in unknown calls would count as computing.
  all[0].header.unrecorded_calls = 1;
  CHECK(!support::analyse(all).efficiency.knows_transfer);
  all[0].header.unrecorded_calls = 0;
  // For good, and before the end of the last phase that rank 0 was in.
  all[0].header.unrecorded_since = Record::ticks(180e6);
  const Report off = support::analyse(all);
  CHECK((off.efficiency.is_known && !off.efficiency.knows_transfer));
  for (const auto& one : off.phases) CHECK(!one.efficiency.is_known);
  all[0].header.unrecorded_since = 0;
  // The record has lost calls: of the phases only what is counted is known.
  for (Record& record : all) {
    record.events.erase(record.events.begin(), record.events.begin() + 16);
    record.capacity = 8;
    record.header.event_count = 24;
  }
  const Report cut = support::analyse(all);
  REQUIRE(cut.phases.size() == 3);
  for (const auto& one : cut.phases) CHECK((one.efficiency.is_known && !one.efficiency.knows_transfer));
  CHECK(contains(report::to_text(cut), "These are of the whole run. Serialisation and transfer need single calls"));
}

TEST_CASE("critical path: of a communicator, the longest chain that ends with its ranks") {
  // Ranks 0 and 1 are late in turn; rank 2, which is in no call with them, computes all the time.
  const auto pair =
      chained(Collective::barrier, 10, 1, -1, [](int rank, int call) { return rank == call % 2 ? 9.0 : 3.0; });
  auto all = support::records(3);
  for (int rank = 0; rank < 3; ++rank) {
    if (rank < 2) {
      all[rank].add_communicator(7, 2, rank, "low");
      for (const trace::Event& event : pair[rank].events) {
        const auto ns = [](std::uint64_t ticks) { return static_cast<double>(ticks - support::origin_ticks) / 2; };
        all[rank].add_call(Collective::barrier, event.call, ns(event.arrival_ticks), ns(event.exit_ticks), 8, -1, 7);
      }
    }
    all[rank].add_timed("MPI_Send", MpiKind::point_to_point, 0, 0);
    all[rank].finalize(100e6);
  }
  const Report analysis = support::analyse(all);
  CHECK(analysis.efficiency.transfer == Approx(1.0));
  const auto low = std::find_if(analysis.communicators.begin(), analysis.communicators.end(),
                                [](const auto& one) { return one.name == "low"; });
  REQUIRE(low != analysis.communicators.end());
  REQUIRE(low->efficiency.knows_transfer);
  CHECK(low->efficiency.transfer == Approx(0.9));
  CHECK(low->efficiency.serialisation == Approx(60.0 / 90));
}

TEST_CASE("efficiencies: transfer is the excess of collectives, serialisation waiting for late ranks") {
  auto all = support::records(2);
  for (int rank = 0; rank < 2; ++rank) {
    // 8 ms of computing, of rank 0 2 ms, then 2 ms of excess.
    for (std::uint64_t call = 0; call < 10; ++call) {
      const double begin = 10e6 * static_cast<double>(call);
      all[rank].add_call(Collective::barrier, call, begin + (rank == 0 ? 2e6 : 8e6), begin + 10e6);
    }
    all[rank].add_timed("MPI_Send", MpiKind::point_to_point, 0, 0);
    all[rank].finalize(100e6);
  }
  report::Efficiency efficiency = support::analyse(all).efficiency;
  REQUIRE(efficiency.knows_transfer);
  CHECK(efficiency.transfer == Approx(0.8));
  CHECK(efficiency.serialisation == Approx(1.0));
  CHECK(efficiency.communication == Approx(0.8));
  // They are late in turn: nobody computes all the time.
  for (int rank = 0; rank < 2; ++rank)
    for (std::uint64_t call = 0; call < 10; ++call)
      all[rank].events[call].arrival_ticks =
          Record::ticks(10e6 * static_cast<double>(call) + (call % 2 == static_cast<std::uint64_t>(rank) ? 2e6 : 8e6));
  for (Record& record : all)
    record.totals.by_size[index_of(Collective::barrier)][0][0].ticks = Record::ticks(50e6) - support::origin_ticks;
  efficiency = support::analyse(all).efficiency;
  CHECK(efficiency.transfer == Approx(0.8));
  CHECK(efficiency.serialisation == Approx(50.0 / 80));
  CHECK(efficiency.communication == Approx(0.5));
}

}  // namespace
}  // namespace papaya
