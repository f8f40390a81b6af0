// Shares of the run, and how what costs most is told.
#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

using report::Report;
using support::contains;
using support::Record;

TEST_CASE("verdict: shares are of the time of all ranks until the last comes to MPI_Finalize") {
  auto all = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    Record& record = all[rank];
    record.capacity = 128;
    for (std::uint64_t call = 0; call < 100; ++call) {
      const double begin = 1e7 * static_cast<double>(call);
      record.add_call(Collective::allreduce, call, begin + (rank == 3 ? 5e6 : 0), begin + 5e6);
    }
    record.add_timed("MPI_Send", MpiKind::point_to_point, 0, 0);
    record.finalize(rank == 0 ? 4e9 : 1e9);
  }
  const Report report = support::analyse(all);
  INFO(report.verdict);
  // 100 calls * 3 ranks * 5 ms, and 3 ranks * 3 s, of 4 * 4 s.
  CHECK(report.recorded_ns == Approx(16e9));
  CHECK(report.waiting_share == Approx(1.5 / 16));
  CHECK(contains(report.verdict, "ank 3 is late: waiting for it costs 9.4 % of the run;"));
  CHECK(contains(report.verdict, "3.00 s after them: 56 % of all ranks' time."));
  CHECK(contains(report.in_short, ", 9.4 % is lost by waiting in collective calls for late ranks,"));
}

TEST_CASE("report: the share of the time in which ranks had no core though there are enough for them") {
  auto all = support::records(3);
  for (Record& record : all) record.finalize(1e8);
  const auto tells_of_it = [&](int cores, std::uint64_t core_wait_ns) {
    for (Record& record : all) {
      record.header.cores = cores;
      record.header.node_ranks = 3;
      record.header.usage = {.wall_ns = 100'000'000, .user_ns = 60'000'000, .core_wait_ns = core_wait_ns};
    }
    return contains(report::to_text(support::analyse(all)), "ranks were ready to run but had no core for ");
  };
  CHECK(tells_of_it(4, 10'000'000));
  CHECK(!tells_of_it(4, 4'000'000));
  CHECK(!tells_of_it(4, ~std::uint64_t{0}));
  CHECK(!tells_of_it(2, 10'000'000));
}

TEST_CASE("verdict: a rank that computes long before calls at which nobody waits for it") {
  auto all = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    Record& record = all[rank];
    record.capacity = 128;
    record.add_call_site({{"app", 0x20}});
    for (std::uint64_t call = 0; call < 100; ++call) {
      const double arrival = rank == 0 ? 5e6 * static_cast<double>(call + 1) : 2e3 * static_cast<double>(call + 1);
      record.add_call(Collective::reduce, call, arrival, arrival + 1000, 8, 0).call_site = 1;
    }
    record.add_timed("MPI_Send", MpiKind::point_to_point, 0, 0);
    record.finalize(rank == 0 ? 501e6 : 1e6);
  }
  const Report report = support::analyse(all);
  INFO(report.verdict);
  CHECK(report.verdict.starts_with(
      "In MPI_Finalize the others wait for rank 0, which comes there 500 ms after them: 75 % of all ranks' time. Rank "
      "0 computes 500 ms longer than the median of the ranks, before calls at app+0x20. In collective calls nobody "
      "waits long: waiting for late ranks costs 0 % of the run."));
  REQUIRE(!report.next.empty());
  CHECK(report.next.front().starts_with(
      "Give rank 0 less work, or make what it computes before the call at app+0x20 quicker: it computes 501 ms,"));
}

TEST_CASE("verdict: who computes long is no reason for a wait in MPI_Finalize that is longer") {
  constexpr std::uint64_t rest = 7;  // all ranks but rank 3, which has nothing to do
  auto all = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    Record& record = all[rank];
    record.capacity = 128;
    record.add_timed("MPI_Send", MpiKind::point_to_point, 0, 0);
    record.finalize(rank == 3 ? 1e6 : 1.2e9);
    if (rank == 3) continue;
    record.add_communicator(rest, 3, rank, "rest");
    for (std::uint64_t call = 0; call < 100; ++call) {
      const double end = 12e6 * static_cast<double>(call + 1);
      record.add_call(Collective::allreduce, call, end - (rank == 1 ? 0 : 2e6), end, 8, -1, rest);
    }
  }
  const Report report = support::analyse(all);
  INFO(report.verdict);
  CHECK(report.verdict.starts_with("Ranks come to MPI_Finalize at different times and wait there for the last, "));
  CHECK(
      contains(report.verdict, "all ranks' time. In collective calls, rank 1 is late: waiting for it costs 8.3 % of "));
  CHECK(contains(report.next.front(), "Spread the work at the end of the program more evenly."));
}

// Calls 25 ms apart; `late_ms(call, rank)` late at each.
template <class Lateness>
std::vector<Record> run_of(std::uint64_t calls, double in_receive_ns, Lateness late_ms) {
  auto all = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    Record& record = all[rank];
    record.capacity = 128;
    record.add_call_site({{"app", 0x20}});
    for (std::uint64_t call = 0; call < calls; ++call) {
      const double begin = 25e6 * static_cast<double>(call);
      record.add_call(Collective::allreduce, call, begin + 21e6 + 1e6 * late_ms(call, rank), begin + 22e6).call_site =
          1;
      if (rank != 0) record.add_interval(in_receive_ns);
    }
    record.add_timed("MPI_Recv", MpiKind::point_to_point, calls,
                     rank == 0 ? 0 : static_cast<double>(calls) * in_receive_ns);
    record.finalize(25e6 * static_cast<double>(calls));
  }
  return all;
}

TEST_CASE("verdict: what costs most comes first, and what to do about it") {
  // All wait 20 ms for rank 0 in messages, and then 1 ms for rank 3.
  const Report messages = support::analyse(run_of(60, 20e6, [](std::uint64_t, int rank) { return rank == 3; }));
  INFO(messages.verdict);
  CHECK(
      messages.verdict.starts_with("Outside of blocking collectives 60 % of all ranks' time passes in MPI, most in "));
  CHECK(contains(messages.verdict, ": rank 0 computes "));
  CHECK(contains(messages.verdict, " In collective calls, rank 3 is late: waiting for it costs 3.0 % of the run;"));
  REQUIRE(messages.next.size() >= 2);
  CHECK(contains(messages.next[0], "Give rank 0 less work"));
  CHECK(contains(messages.next[1], "Give rank 3 less work"));

  // Ranks 0 and 3 are late in turn, and at the end all wait for rank 1.
  auto all = run_of(60, 0, [](std::uint64_t call, int rank) { return rank == (call % 2 == 0 ? 0 : 3); });
  for (int rank = 0; rank < 4; ++rank) all[rank].finalize(rank == 1 ? 6e9 : 1.5e9);
  const Report end = support::analyse(all);
  INFO(end.verdict);
  CHECK(end.verdict.starts_with("In MPI_Finalize the others wait for rank 1, which comes there 4.50 s after them: "));
  REQUIRE(end.next.size() >= 1);
  CHECK(contains(end.next[0], "Look at what rank 1 does alone after the last call of the others"));

  // In collectives less is lost than at the end, but still enough for a step.
  for (int rank = 0; rank < 4; ++rank) all[rank].finalize(rank == 1 ? 1.7e9 : 1.5e9);
  const Report both = support::analyse(all);
  INFO(both.verdict);
  CHECK(contains(both.verdict, " In collective calls, ranks 0, 3 are late: waiting for them costs "));
  REQUIRE(both.next.size() >= 2);
  CHECK(contains(both.next[0], "Look at what rank 1 does alone after the last call of the others"));
  CHECK(contains(
      both.next[1],
      "Spread the work before the call at app+0x20 more evenly: 100 % of the waiting in collective calls is there."));
}

TEST_CASE("verdict: of several nodes a rank is last at the calls of its own") {
  std::vector<support::Record> all;
  for (int rank = 0; rank < 4; ++rank) {
    all.emplace_back(rank, 4, rank / 2, 2);
    all.back().add_communicator(support::world_id, 4, rank, "MPI_COMM_WORLD");
    for (std::uint64_t call = 0; call < 1000; ++call)
      all.back().add_call(Collective::allreduce, call, 1e6 * static_cast<double>(call),
                          1e6 * static_cast<double>(call) + 1000);
    all.back().finalize(2e9);
  }
  // Rank 1 is late at all of them; on the other node ranks come together.
  for (const int rank : {1, 3}) {
    trace::NodeCalls calls{};
    calls.communicator = support::world_id;
    calls.rank = rank;
    calls.call_site = all[static_cast<std::size_t>(rank)].add_call_site({{"app", 0x20}});
    calls.used = 1;
    calls.collective = static_cast<std::uint8_t>(Collective::allreduce);
    calls.calls = 1000;
    if (rank == 1) {
      calls.times_last = 1000;
      calls.imbalance_ticks = calls.caused_ticks = support::Record::ticks(1e9) - support::origin_ticks;
      calls.most_ticks = support::Record::ticks(5e8) - support::origin_ticks;
    }
    all[static_cast<std::size_t>(rank - 1)].node_calls.push_back(calls);
  }
  const Report report = support::analyse(all);
  CHECK(contains(report.verdict, "rank 1, which arrives last at 1,000 of the 1,000 calls of its node"));
  const std::string text = report::to_text(report);
  CHECK(contains(text, "(2,000 calls, each once for every node"));
  CHECK(contains(text, "1,000    100.0%"));
  CHECK(contains(text, "rank 1, last 100 %"));
}

TEST_CASE("verdict: of calls at which a rank is last by next to nothing it is said so") {
  auto all = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    all[rank].capacity = 512;
    for (std::uint64_t call = 0; call < 300; ++call) {
      const double begin = 1e7 * static_cast<double>(call);
      const double late_ns = call % 3 == 1 ? 5.07e6 : call % 3 == 0 && call < 84 ? 2e3 : 0;
      all[rank].add_call(Collective::allreduce, call, begin + (rank == 2 ? late_ns : 0), begin + 6e6);
    }
    all[rank].finalize(3e9);
  }
  const Report report = support::analyse(all);
  INFO(report.verdict);
  CHECK(contains(report.verdict,
                 "; it arrives last at 128 of the 300 MPI_Allreduce calls, 100 of them by 5.07 ms, else by next to "
                 "nothing."));

  // Later from call to call: no two kinds of delays.
  for (std::uint64_t call = 0; call < 300; ++call)
    all[2].events[call].arrival_ticks =
        Record::ticks(1e7 * static_cast<double>(call) + 1e4 * static_cast<double>(call));
  CHECK(contains(support::analyse(all).verdict, "at 299 of the 300 MPI_Allreduce calls, typically by 1."));
}

}  // namespace
}  // namespace papaya
