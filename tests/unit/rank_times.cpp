// Where each rank's time goes, where delays begin, and what the report's first sentence makes of both.
#include "profiler/analysis/rank_times.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

using report::Report;
using support::contains;
using support::Record;

const report::RankFigures& rank_of(const Report& report, std::int32_t rank) {
  return *std::find_if(report.late_ranks.begin(), report.late_ranks.end(),
                       [rank](const auto& one) { return one.rank == rank; });
}

double sum(const report::RankTime& time) {
  return time.before_ns + time.computing_ns + time.unrecorded_ns + time.collectives_ns + time.elsewhere_ns();
}

TEST_CASE("rank times: the parts sum to the run") {
  auto all = support::records(3);
  for (int rank = 0; rank < 3; ++rank) {
    all[rank].header.init_ticks = Record::ticks(1e6 * rank);
    all[rank].add_call(Collective::allreduce, 0, 10e6, 14e6);
    all[rank].add_call(Collective::allreduce, 1, 20e6, 21e6, 8, -1, support::world_id, Form::nonblocking);
    all[rank].add_timed("MPI_Sendrecv", MpiKind::point_to_point, 10, 2e6 * (rank + 1));
    all[rank].add_timed("MPI_File_write_all", MpiKind::io, 1, 5e6);
    all[rank].finalize(100e6 + 1e6 * rank);
  }
  const Report analysis = support::analyse(all);
  REQUIRE(analysis.late_ranks.size() == 3);
  for (const auto& rank : analysis.late_ranks) CHECK(sum(rank.time) == Approx(analysis.run_ns));
  const report::RankTime& time = rank_of(analysis, 1).time;
  CHECK(time.before_ns == Approx(1e6));
  CHECK(time.computing_ns == Approx(101e6 - 1e6 - 4e6 - 1e6 - 4e6 - 5e6));
  CHECK(time.collectives_ns == Approx(4e6));
  CHECK(time.starting_ns == Approx(1e6));
  CHECK(time.of_kind[index_of(MpiKind::point_to_point)] == Approx(4e6));
  CHECK(time.of_kind[index_of(MpiKind::io)] == Approx(5e6));
  CHECK(time.finalize_ns == Approx(1e6));
  REQUIRE(analysis.functions.size() == 2);
  CHECK(analysis.functions[0].name == "MPI_File_write_all");
  CHECK(analysis.functions[1].calls == 30);
  CHECK(analysis.functions[1].ns == Approx(12e6));
  CHECK(analysis.functions[1].most_rank == 2);
  CHECK(contains(report::to_text(analysis), "MPI_Sendrecv"));
  CHECK(contains(report::to_json(analysis), "\"io_seconds\": 0.005"));
}

// 100 calls of each rank, 3 ms apart; the late one comes 2 ms after the others.
std::vector<Record> late_at(int ranks, int late) {
  auto all = support::records(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    all[rank].capacity = 128;
    all[rank].add_call_site({{"app", 0x10}});
    all[rank].add_call_site({{"app", 0x20}});
    for (std::uint64_t call = 0; call < 100; ++call) {
      const double begin = 3e6 * static_cast<double>(call);
      all[rank].add_call(Collective::allreduce, call, begin + (rank == late ? 2.5e6 : 0.5e6), begin + 3e6).call_site =
          1;
    }
    all[rank].finalize(300e6);
  }
  return all;
}

TEST_CASE("origins: a rank that computes longer is late itself") {
  auto all = late_at(4, 2);
  for (auto& record : all) record.add_timed("MPI_Send", MpiKind::point_to_point, 0, 0);
  const Report analysis = support::analyse(all);
  const report::RankFigures& late = rank_of(analysis, 2);
  CHECK(late.began_ns == Approx(late.caused_ns));
  CHECK(late.passed_on_ns == 0);
  CHECK(late.late_at.size() == 1);
  CHECK(analysis.verdict.starts_with("Rank 2 is late: waiting for it costs 50 % of the run; it arrives last"));
}

TEST_CASE("origins: a rank that waits for a message is not blamed for its delay") {
  auto all = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    Record& record = all[rank];
    record.capacity = 128;
    record.add_call_site({{"app", 0x10}});
    record.add_call_site({{"app", 0x20}});
    for (std::uint64_t call = 0; call < 100; ++call) {
      const double begin = 3e6 * static_cast<double>(call);
      // Rank 1 computes 2.4 ms and then sends to rank 2, which has waited for that and comes last.
      const double arrival = rank == 2 ? 2.6e6 : rank == 1 ? 2.4e6 : 0.2e6;
      record.add_call(Collective::allreduce, call, begin + arrival, begin + 3e6).call_site = 1;
      if (rank == 1) record.add_interval(1e3, 2);
      if (rank == 2) record.add_interval(2.4e6);
    }
    record.add_timed("MPI_Send", MpiKind::point_to_point, rank == 1 ? 100 : 0, rank == 1 ? 100e3 : 0);
    record.add_timed("MPI_Recv", MpiKind::point_to_point, rank == 2 ? 100 : 0, rank == 2 ? 240e6 : 0);
    record.finalize(300e6);
  }
  Report analysis = support::analyse(all);
  const report::RankFigures& victim = rank_of(analysis, 2);
  CHECK(victim.began_ns == 0);
  CHECK(victim.passed_on_ns == Approx(victim.caused_ns));
  CHECK(victim.passed_on_from == 1);
  CHECK(rank_of(analysis, 1).began_ns == Approx(victim.caused_ns));
  REQUIRE(rank_of(analysis, 1).late_at.size() == 1);
  CHECK(rank_of(analysis, 1).late_at[0].offset == 0x20);
  CHECK(analysis.verdict.starts_with("Rank 1 is late, at app+0x20, and holds up rank 2: waiting for that costs "));
  CHECK(contains(analysis.verdict, "; rank 2 arrives last at all 100 MPI_Allreduce calls, by 2.40 ms."));
  // The same arrivals, but nobody is known to have computed so long: nobody is blamed.
  for (auto& interval : all[1].intervals) interval.mpi_ticks = static_cast<std::uint64_t>(2.3e6 / 0.5);
  analysis = support::analyse(all);
  CHECK(rank_of(analysis, 2).unknown_origin_ns == Approx(rank_of(analysis, 2).caused_ns));
  CHECK(contains(analysis.verdict, "where its delay comes from is not known."));
  // Without any such figures the late rank is named, as its arrival says.
  for (auto& record : all) {
    record.timed.clear();
    record.intervals.clear();
  }
  CHECK(support::analyse(all).verdict.starts_with("Rank 2 is late: waiting for it costs"));
}

TEST_CASE("origins: of two ranks that compute long it is the one that others waited for, also through a third") {
  auto all = support::records(5);
  for (int rank = 0; rank < 5; ++rank) {
    Record& record = all[rank];
    record.capacity = 128;
    for (std::uint64_t call = 0; call < 100; ++call) {
      const double begin = 3e6 * static_cast<double>(call);
      // Rank 0 computes longest, rank 1 2.3 ms; rank 3 waits for the message of 2, which waits for that of 1.
      const double arrivals[] = {2.4e6, 2.3e6, 2.4e6, 2.6e6, 0.1e6};
      record.add_call(Collective::allreduce, call, begin + arrivals[rank], begin + 3e6);
      if (rank == 2) record.add_interval(2.3e6, 0, 1);
      if (rank == 3) record.add_interval(2.4e6, 0, 2);
    }
    record.add_timed("MPI_Recv", MpiKind::point_to_point, rank == 2 || rank == 3 ? 100 : 0, 0);
    record.finalize(300e6);
  }
  Report analysis = support::analyse(all);
  CHECK(rank_of(analysis, 3).passed_on_from == 1);
  CHECK(rank_of(analysis, 3).passed_on_ns == Approx(rank_of(analysis, 3).caused_ns));
  CHECK(rank_of(analysis, 3).most_waited_for == 2);
  CHECK(rank_of(analysis, 3).most_waited_ns == Approx(240e6).epsilon(0.01));
  CHECK(rank_of(analysis, 2).most_waited_for == 1);
  CHECK(rank_of(analysis, 0).most_waited_for == -1);
  CHECK(contains(to_text(analysis),
                 "For whom ranks wait most in messages: rank 3 for rank 2 (240 ms), rank 2 for rank 1 "));
  // Without that evidence the one that computes longest is taken for it.
  for (auto& record : all)
    for (auto& interval : record.intervals) interval.waited_for = 0;
  CHECK(rank_of(support::analyse(all), 3).passed_on_from == 0);
}

TEST_CASE("origins: a delay that comes through another communicator") {
  constexpr std::uint64_t pair = 7;
  auto all = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    Record& record = all[rank];
    record.capacity = 256;
    const bool is_in_pair = rank == 1 || rank == 2;
    if (is_in_pair) record.add_communicator(pair, 2, rank - 1, "pair");
    for (std::uint64_t call = 0; call < 100; ++call) {
      const double begin = 3e6 * static_cast<double>(call);
      if (is_in_pair)
        record.add_call(Collective::allreduce, call, begin + (rank == 1 ? 2e6 : 0.1e6), begin + 2e6, 8, -1, pair);
      record.add_call(Collective::bcast, call, begin + (is_in_pair ? rank == 2 ? 2.2e6 : 2.01e6 : 0.1e6), begin + 3e6,
                      8, 2);
    }
    record.add_timed("MPI_Send", MpiKind::point_to_point, 0, 0);
    record.finalize(300e6);
  }
  const Report analysis = support::analyse(all);
  const report::RankFigures& through = rank_of(analysis, 2);
  CHECK(through.passed_on_from == 1);
  CHECK(through.passed_on_ns == Approx(through.caused_ns));
}

// 4 ranks that spend all but what they compute in one function.
std::string verdict_of(const std::vector<double>& computing_ms, const std::string& function, MpiKind kind) {
  auto all = support::records(static_cast<int>(computing_ms.size()));
  for (std::size_t rank = 0; rank < computing_ms.size(); ++rank) {
    all[rank].add_timed(function, kind, 100, 500e6 - 1e6 * computing_ms[rank]);
    all[rank].finalize(500e6);
  }
  return support::analyse(all).verdict;
}

TEST_CASE("verdict: waiting outside of blocking collectives") {
  CHECK(
      verdict_of({10, 499, 10, 12}, "MPI_Wait", MpiKind::completion) ==
      "The program made no collective calls, so there are no arrivals to compare. Outside of blocking collectives 73 % "
      "of all ranks' time passes in MPI, most in MPI_Wait (73 %): rank 1 computes 489 ms longer than the median of the "
      "others, which wait meanwhile.");
  CHECK(verdict_of({10, 12, 10, 499}, "MPI_Win_fence", MpiKind::one_sided)
            .ends_with("rank 3 computes 489 ms longer than the median of "
                       "the others, which wait meanwhile."));
  // Two of them, at the same time ...
  CHECK(verdict_of({10, 489, 491, 10}, "MPI_Wait", MpiKind::completion)
            .ends_with(": ranks 1-2 compute 479 ms to 481 ms longer than the median of the others, which wait "
                       "meanwhile."));
  // ... and one after the other, or with much else beside it.
  CHECK(verdict_of({10, 250, 250, 10}, "MPI_Win_fence", MpiKind::one_sided)
            .ends_with(": ranks 1-2 compute 240 ms longer than the median of the others, which explains 49 % of what "
                       "those wait, or 98 % if they do so at different times. Only blocking collectives are compared "
                       "call by call."));
  CHECK(verdict_of({10, 300, 10, 10}, "MPI_Wait", MpiKind::completion)
            .ends_with(": rank 1 computes 290 ms longer than the median of the others, which explains 59 % of what "
                       "those wait. Only blocking collectives are compared call by call."));
  // More than half of them.
  CHECK(
      contains(verdict_of({490, 490, 490, 10}, "MPI_Wait", MpiKind::completion), ": ranks 0-2 compute 480 ms longer"));
  // All wait alike: nobody is named.
  CHECK(
      verdict_of({100, 105, 98, 102}, "MPI_Comm_dup", MpiKind::management)
          .ends_with("most in MPI_Comm_dup (80 %); no rank computes enough longer than the others to explain it: ranks "
                     "may be late in turn, or MPI takes that time itself. Only blocking collectives are compared "
                     "call by call."));
  // Many that compute a little longer do not explain it either.
  std::vector<double> many_ms(64, 60);
  std::fill(many_ms.begin(), many_ms.begin() + 32, 110);
  CHECK(contains(verdict_of(many_ms, "MPI_Wait", MpiKind::completion), "no rank computes enough longer"));
  // Little of it.
  CHECK(verdict_of({495, 496, 495, 497}, "MPI_Wait", MpiKind::completion) ==
        "The program made no collective calls, so there are no arrivals to compare.");
}

TEST_CASE("verdict: ranks that share cores are no reason for waiting outside of blocking collectives") {
  auto all = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    all[rank].header.cores = 2;
    all[rank].header.node_ranks = 4;
    all[rank].add_timed("MPI_Wait", MpiKind::completion, 100, 400e6);
    all[rank].finalize(500e6);
  }
  const Report analysis = support::analyse(all);
  REQUIRE(analysis.crowded_ranks == 4);
  CHECK(contains(analysis.verdict, "ranks may be late in turn"));
  CHECK_FALSE(contains(analysis.verdict, "share cores"));
}

TEST_CASE("rank times: without recording nobody is known to compute") {
  auto all = support::records(2);
  for (int rank = 0; rank < 2; ++rank) {
    Record& record = all[rank];
    record.add_call(Collective::allreduce, 0, 10e6, 11e6);
    record.add_call(Collective::allreduce, 1, 90e6, 91e6);
    record.add_timed("MPI_Send", MpiKind::point_to_point, 0, 0);
    record.header.unrecorded_ticks = Record::ticks(60e6) - Record::ticks(0);
    record.finalize(100e6);
  }
  all[1].header.unrecorded_since = Record::ticks(92e6);
  const Report analysis = support::analyse(all);
  CHECK(rank_of(analysis, 0).time.unrecorded_ns == Approx(60e6));
  CHECK(rank_of(analysis, 0).time.computing_ns == Approx(38e6));
  CHECK(rank_of(analysis, 1).time.unrecorded_ns == Approx(68e6));
  CHECK(rank_of(analysis, 1).time.computing_ns == Approx(30e6));
  for (const auto& rank : analysis.late_ranks) CHECK(sum(rank.time) == Approx(analysis.run_ns));
  CHECK(analysis.efficiency.communication == Approx(0.95));  // 38 of 40 ms
  const auto talp = nlohmann::json::parse(report::to_talp(analysis))["Application"]["Global"];
  CHECK(talp["elapsedTime"] == 40'000'000);
  CHECK(talp["usefulTime"] == 68'000'000);
  CHECK(talp["mpiTime"] == 12'000'000);
  CHECK(contains(analysis.in_short, "34 % of the time of the 2 ranks goes into computing, 64 % is not recorded"));
  CHECK(std::any_of(analysis.notes.begin(), analysis.notes.end(), [](const std::string& note) {
    return note ==
           "Not recorded because the program had switched recording off by MPI_Pcontrol: 0 collective calls, 128 ms "
           "(summed over ranks). That time is neither under computing nor under MPI.";
  }));
}

// Ranks 0 and 2 on one side, 1 and 3 on the other; each side waits for rank 2.
TEST_CASE("verdict: collectives on intercommunicators are not compared") {
  auto all = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    Record& record = all[rank];
    const auto side = static_cast<std::uint64_t>(7 + rank % 2);
    record.add_communicator(side, 2, rank / 2, "");
    record.communicators.back().origin = static_cast<std::int32_t>(trace::Origin::inter);
    for (std::uint64_t call = 0; call < 5; ++call) {
      const double begin = 100e6 * static_cast<double>(call);
      record.add_call(Collective::allreduce, call, begin + (rank == 2 ? 80e6 : 0), begin + 81e6, 8, -1, side);
    }
    record.add_timed("MPI_Send", MpiKind::point_to_point, 0, 0);
    record.finalize(500e6);
  }
  const Report analysis = support::analyse(all);
  CHECK(analysis.compared_calls == 0);
  CHECK(analysis.record.intercommunicator_calls == 20);
  CHECK(analysis.verdict ==
        "Arrivals cannot be compared: the blocking collective calls are on intercommunicators, whose groups wait for "
        "each "
        "other. In collectives on intercommunicators, which are not compared, 61 % of all ranks' time passes.");
  CHECK(std::any_of(analysis.notes.begin(), analysis.notes.end(), [](const std::string& note) {
    return note ==
           "Not compared because they are on intercommunicators, whose groups wait for each other: 20 calls (summed "
           "over ranks), 1.22 s inside.";
  }));
}

TEST_CASE("verdict: a rank that works on alone while the others are in MPI_Finalize") {
  auto all = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    all[rank].add_call(Collective::barrier, 0, 100e6, 100.1e6);
    all[rank].add_timed("MPI_Send", MpiKind::point_to_point, 0, 0);
    all[rank].finalize(rank == 0 ? 2100e6 : 101e6);
  }
  CHECK(support::analyse(all).verdict.starts_with(
      "In MPI_Finalize the others wait for rank 0, which comes there 2.00 s after them: 71 % of all ranks' time. In "
      "collective calls nobody waits long: waiting for late ranks costs 0 % of the run."));
  // One after the other.
  for (int rank = 0; rank < 4; ++rank) all[rank].finalize(101e6 + 100e6 * rank);
  CHECK(contains(support::analyse(all).verdict,
                 "Ranks come to MPI_Finalize at different times and wait there for the last, rank 3:"));
}

TEST_CASE("rank times: many ranks are shown by those that compute most and least") {
  auto all = support::records(100);
  for (int rank = 0; rank < 100; ++rank) {
    all[rank].add_timed("MPI_Recv", MpiKind::point_to_point, 1, 1e6 * rank);
    all[rank].finalize(200e6);
  }
  const std::string text = report::to_text(support::analyse(all));
  CHECK(contains(text, "88 ranks that compute less than the first 6 and more than the last 6 are in report.json"));
}

}  // namespace
}  // namespace papaya
