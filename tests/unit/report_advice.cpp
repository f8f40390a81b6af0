// The line for everybody and the next steps, from planted causes.
#include <algorithm>
#include <string>
#include <vector>

#include "profiler/report/report.hpp"
#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

using report::Report;
using support::contains;
using support::Record;

// 100 calls in 300 ms, each rank computing `computing_ms(rank)` before each.
template <class Computing>
std::vector<Record> run_of(int ranks, Computing computing_ms) {
  auto all = support::records(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    Record& record = all[rank];
    record.capacity = 128;
    record.add_call_site({{"app", 0x20}});
    for (std::uint64_t call = 0; call < 100; ++call)
      record
          .add_call(Collective::allreduce, call, 3e6 * static_cast<double>(call) + 1e6 * computing_ms(rank),
                    3e6 * static_cast<double>(call + 1))
          .call_site = 1;
    record.add_timed("MPI_Send", MpiKind::point_to_point, 0, 0);
    record.finalize(300e6);
  }
  return all;
}

double late_rank_2(int rank) {
  return rank == 2 ? 2.5 : 0.5;
}

}  // namespace

TEST_CASE("advice: where to take work from") {
  const Report report = support::analyse(run_of(4, late_rank_2));
  REQUIRE(!report.next.empty());
  CHECK(report.next.front() ==
        "Give rank 2 less work, or make what it computes before the call at app+0x20 quicker: it computes 250 ms, the "
        "median of the ranks 50.0 ms.");
  CHECK(report.in_short ==
        "33 % of the time of the 4 ranks goes into computing, 50 % is lost by waiting in collective calls for late "
        "ranks, "
        "and 17 % passes in MPI otherwise. If no rank computed longer than the median of the ranks, the run would take "
        "about 100 ms instead of 300 "
        "ms.");
  const std::string text = report::to_text(report);
  CHECK(contains(text, "In short: 33 % of the time"));
  CHECK(contains(text, "Next: Give rank 2 less work"));
  CHECK(contains(report::to_json(report), "\"in_short\": \"33 % of the time"));
}

TEST_CASE("advice: the line for everybody is of the ranks that were recorded") {
  std::vector<Record> all = run_of(4, late_rank_2);
  for (Record& record : all) {
    record.header.ranks = 1000;
    record.communicators[0].size = 1000;
  }
  const support::Folder folder;
  folder.write(all);
  folder.write("papaya.cfg", std::string("PAPAYA_RANKS=0-3\n"));
  const Report report = report::report_on(report::load_run(folder.path()));
  CHECK(contains(report.in_short, "33 % of the time of 4 of the 1,000 ranks goes into computing"));
}

TEST_CASE("advice: a core is named only where it is known") {
  std::vector<Record> all = run_of(4, late_rank_2);
  for (Record& record : all) {
    record.header.usage.wall_ns = 300'000'000;
    record.header.usage.core = -1;
  }
  all[2].header.usage.core_wait_ns = 150'000'000;
  const Report report = support::analyse(all);
  REQUIRE(!report.next.empty());
  CHECK(contains(report.next.front(), "look for what else runs on its node."));
  all[2].header.usage.core = 5;
  CHECK(contains(support::analyse(all).next.front(), "look for what else runs on core 5 of its node."));
}

TEST_CASE("advice: a late rank that uses no core waits for something else") {
  auto all = run_of(4, late_rank_2);
  for (auto& record : all) record.header.usage = {.wall_ns = 300'000'000, .user_ns = 60'000'000, .core_wait_ns = 0};
  CHECK(support::analyse(all).next.front() ==
        "Look at what rank 2 waits for outside MPI before the call at app+0x20: it spends 250 ms there, the median of "
        "the ranks 50.0 ms, but uses a core only 20 % of the run. Files, locks and sleeps do that.");
  // One that has no core is given one.
  all[2].header.usage.core_wait_ns = 150'000'000;
  all[2].header.usage.core = 5;
  CHECK(contains(support::analyse(all).next.front(), "Give rank 2 a core of its own"));
  CHECK(contains(support::analyse(all).next.front(), "what else runs on core 5 of its node"));
}

TEST_CASE("advice: the step is about the reason that the verdict gives") {
  auto all = run_of(4, late_rank_2);
  // Rank 2 is slow because of the disk; that it also waited a little longer for a core than the others is no reason.
  for (auto& record : all) record.header.usage = {.wall_ns = 300'000'000, .user_ns = 60'000'000, .core_wait_ns = 0};
  all[2].header.usage.core_wait_ns = 3'000'000;
  all[2].header.usage.major_faults = 400;
  const Report report = support::analyse(all);
  CHECK(contains(report.verdict, "Rank 2 waited for 400 pages of memory to be read from disk"));
  CHECK(report.next.front() ==
        "Look at the memory and the file system of rank 2's node: it waits for pages from disk.");
}

TEST_CASE("advice: time on no core is not told as computing") {
  auto all = run_of(4, late_rank_2);
  for (int rank = 0; rank < 4; ++rank)
    all[rank].header.usage = {.wall_ns = 300'000'000, .user_ns = rank == 2 ? 3'000'000u : 60'000'000u};
  CHECK(support::analyse(all).in_short.starts_with(
      "33 % of the time of the 4 ranks passes outside MPI (21 % or more on no core), 50 % is lost by waiting"));
}

TEST_CASE("advice: no step for a rank that costs less than 1 % of the run") {
  const auto with = [](double lateness_ms) {
    return support::analyse(run_of(4, [=](int rank) { return rank == 2 ? 2.5 + lateness_ms : 2.5; }));
  };
  const auto names_rank_2 = [](const Report& report) {
    return std::any_of(report.next.begin(), report.next.end(),
                       [](const std::string& step) { return contains(step, "rank 2"); });
  };
  const Report little = with(0.02);
  INFO(little.verdict);
  CHECK(contains(little.verdict, "waiting for late ranks costs 0.5 % of the run"));
  CHECK(!names_rank_2(little));
  const Report more = with(0.2);
  INFO(more.verdict);
  CHECK(names_rank_2(more));
}

TEST_CASE("advice: one call is looked at where it is") {
  auto all = run_of(4, [](int) { return 0.5; });
  for (int rank = 0; rank < 4; ++rank) {
    Record& record = all[rank];
    record.add_call(Collective::barrier, 100, rank == 1 ? 800e6 : 301e6, 801e6).call_site = 1;
    record.finalize(801e6);
  }
  const Report report = support::analyse(all);
  CHECK(contains(report.next.front(),
                 "Look at what rank 1 does before call 100 of MPI_Barrier at app+0x20, 301 ms into "));
  CHECK(
      contains(report.next.front(), "`papaya trace --chrome --from 0.176 --to 0.925 -o trace.json FOLDER` shows it."));
}

// Rank 0 is through `calls` bcasts as their root at once, the others take 5 ms before each; all meet in a barrier.
std::vector<Record> ahead_of_bcasts(std::uint64_t calls) {
  auto all = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    Record& record = all[rank];
    record.capacity = 128;
    record.add_call_site({{"app", 0x20}});
    record.add_call_site({{"app", 0x40}});
    for (std::uint64_t call = 0; call < calls; ++call) {
      const double arrival = rank == 0 ? 1e3 * static_cast<double>(call) : 5e6 * static_cast<double>(call + 1) + rank;
      record.add_call(Collective::bcast, call, arrival, arrival + 500, 8, 0).call_site = 1;
    }
    const double end = 5e6 * static_cast<double>(calls);
    record.add_call(Collective::barrier, calls, rank == 0 ? 200e3 : end + 1e6 + 1e3 * rank, end + 2e6).call_site = 2;
    record.add_timed("MPI_Send", MpiKind::point_to_point, 0, 0);
    record.finalize(end + 2e6);
  }
  return all;
}

TEST_CASE("advice: a rank that is ahead of all the others is told so, with the calls that they make meanwhile") {
  const Report report = support::analyse(ahead_of_bcasts(100));
  INFO(report.verdict);
  CHECK(contains(report.verdict, ", where rank 0 alone waited, 501 ms, for ranks 1-3. Waiting for late ranks at all "));
  CHECK(report.next.front() ==
        "Give rank 0 some of the work of ranks 1-3: it comes to call 100 of MPI_Barrier at app+0x40 501 ms before "
        "them; meanwhile rank 3 makes 100 MPI_Bcast calls at app+0x20: `papaya trace --chrome --from 0.000 --to 0.626 "
        "-o trace.json FOLDER` shows it.");
  CHECK(contains(report::to_json(report), "\"waits_alone\": 0"));
}

TEST_CASE("advice: a late rank that makes calls while the others wait is not at the program's start") {
  // In MPI_Scan nobody waits for the last rank.
  auto all = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    Record& record = all[rank];
    record.capacity = 128;
    record.add_call_site({{"app", 0x20}});
    for (std::uint64_t call = 0; call < 80; ++call) {
      const double arrival = 1e3 + (rank == 3 ? 5e6 : 1e3) * static_cast<double>(call);
      record.add_call(Collective::scan, call, arrival, arrival + 500).call_site = 1;
    }
    record.add_call(Collective::barrier, 80, rank == 3 ? 400e6 : 90e3, 401e6).call_site = 1;
    record.finalize(401e6);
  }
  CHECK(contains(support::analyse(all).next.front(),
                 "Look at what rank 3 does before call 80 of MPI_Barrier at app+0x20, 90.0 µs into the run; meanwhile "
                 "it makes 79 MPI_Scan calls at app+0x20: `papaya trace"));
  // Its first call is.
  auto start = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    Record& record = start[rank];
    record.capacity = 64;
    record.add_call_site({{"app", 0x20}});
    for (std::uint64_t call = 0; call < 40; ++call)
      record
          .add_call(Collective::barrier, call,
                    call > 0    ? 1e6 * (500 + static_cast<double>(call))
                    : rank == 1 ? 500e6
                                : 100e3,
                    1e6 * (500.5 + static_cast<double>(call)))
          .call_site = 1;
    record.finalize(600e6);
  }
  CHECK(contains(support::analyse(start).next.front(),
                 "Look at what rank 1 does before call 0 of MPI_Barrier at app+0x20, 100 µs into the run, while the "
                 "program starts: `papaya trace"));
}

TEST_CASE("advice: of a job that a rank has aborted that comes first") {
  auto all = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    Record& record = all[rank];
    record.add_call_site({{"app", 0x20}});
    record.add_call(Collective::allreduce, 0, 0, 1000).call_site = 1;
    if (rank != 1) record.add_call(Collective::allreduce, 1, 2000, -1).call_site = 1;
  }
  all[1].header.ending = static_cast<std::uint32_t>(trace::Ending::aborted);
  all[1].header.abort_code = 3;
  const Report report = support::analyse(all);
  INFO(report.verdict);
  CHECK(report.verdict.starts_with("Rank 1 called MPI_Abort with code 3. Ranks 0, 2-3 were inside MPI_Allreduce, "));
  REQUIRE(report.next.size() == 1);
  CHECK(report.next.front() ==
        "Look for why rank 1 called MPI_Abort after MPI_Allreduce, call 0 on MPI_COMM_WORLD, at app+0x20, and at what "
        "it wrote before.");
}

TEST_CASE("verdict: a delay that reaches the others in two ways began with one rank") {
  // Rank 1 computes 2 ms; rank 2 waits for it in a collective of the two, and then the others for rank 2.
  auto all = support::records(3);
  constexpr std::uint64_t pair = 77;
  for (int rank = 0; rank < 3; ++rank) {
    Record& record = all[rank];
    record.capacity = 512;
    record.add_call_site({{"app", 0x20}});
    if (rank == 1 || rank == 2) record.add_communicator(pair, 2, rank - 1, "pair");
    for (std::uint64_t call = 0; call < 100; ++call) {
      const double begin = 3e6 * static_cast<double>(call);
      if (rank == 1 || rank == 2) {
        record.add_call(Collective::allreduce, call, begin + (rank == 1 ? 2e6 : 0.1e6), begin + 2.05e6, 8, -1, pair)
            .call_site = 1;
      }
      record
          .add_call(Collective::allreduce, call,
                    begin + (rank == 2   ? 2.15e6
                             : rank == 1 ? 2.1e6
                                         : 0.1e6),
                    begin + 3e6)
          .call_site = 1;
    }
    record.add_timed("MPI_Send", MpiKind::point_to_point, 0, 0);
    record.finalize(300e6);
  }
  const Report report = support::analyse(all);
  INFO(report.verdict);
  CHECK(report.verdict.starts_with("Rank 1 is late, at app+0x20: waiting that begins with it costs "));
  CHECK(contains(report.verdict, ", most of it where rank 2 holds up the others in turn."));
}

TEST_CASE("verdict: that nobody waits for late receivers is no balance") {
  const auto verdict_of = [](Collective collective, double late_ns) {
    auto all = support::records(3);
    for (int rank = 0; rank < 3; ++rank) {
      all[rank].add_call(collective, 0, rank == 2 ? late_ns : 0, late_ns + 1000, 8,
                         collective == Collective::bcast ? 0 : -1);
      all[rank].finalize(1e6);
    }
    return support::analyse(all).verdict;
  };
  CHECK(verdict_of(Collective::bcast, 5e5) ==
        "In collective calls nobody waits long: waiting for late ranks costs 0 % of the run.");
  CHECK(verdict_of(Collective::allreduce, 10).starts_with("Arrivals are balanced: "));
}

TEST_CASE("advice: nothing is to be done about balanced arrivals") {
  const Report report = support::analyse(run_of(4, [](int) { return 2.999; }));
  CHECK(report.next.empty());
  CHECK(report.in_short == "100 % of the time of the 4 ranks goes into computing.");
}

TEST_CASE("advice: ranks that share cores are to be fewer") {
  auto all = run_of(4, late_rank_2);
  for (auto& record : all) {
    record.header.cores = 2;
    record.header.node_ranks = 4;
  }
  const Report report = support::analyse(all);
  REQUIRE(report.crowded_ranks == 4);
  CHECK(std::any_of(report.next.begin(), report.next.end(), [](const std::string& step) {
    return contains(step,
                    "Start at most 2 ranks on a node, one for each core, and measure again: 4 ranks share 2 cores");
  }));
  CHECK(!contains(report.in_short, "would take about"));
}

TEST_CASE("advice: where cores are shared and computing does not explain a delay, cores come first") {
  auto all = run_of(4, late_rank_2);
  for (int rank = 0; rank < 4; ++rank) {
    all[rank].header.cores = 2;
    all[rank].header.node_ranks = 4;
  }
  // Half of what rank 2 seems to compute passes in MPI_Test.
  for (std::size_t call = 0; call < 100; ++call) {
    all[2].add_interval(1e6);
    all[2].intervals.back().commit = all[2].events[call].commit;
  }
  all[2].add_timed("MPI_Test", MpiKind::completion, 100, 100e6);
  const Report report = support::analyse(all);
  INFO(report.verdict);
  CHECK(contains(report.verdict, " What it computes longer than the others is not all of that: ranks share cores."));
  CHECK(report.next.front().starts_with("Start at most 2 ranks on a node"));
}

TEST_CASE("advice: ranks for which the others wait outside of blocking collectives") {
  auto all = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    all[rank].add_timed("MPI_Win_fence", MpiKind::one_sided, 100, rank == 1 || rank == 2 ? 250e6 : 490e6);
    all[rank].finalize(500e6);
  }
  const std::vector<std::string> next = support::analyse(all).next;
  REQUIRE(!next.empty());
  CHECK(next.front() ==
        "Give ranks 1-2 less work, or make it quicker: they compute 240 ms longer than the median of the others.");
}

TEST_CASE("advice: a rank that works on alone while the others are in MPI_Finalize") {
  auto all = run_of(4, [](int) { return 0.5; });
  for (int rank = 0; rank < 4; ++rank) all[rank].finalize(rank == 3 ? 900e6 : 300e6);
  const Report report = support::analyse(all);
  CHECK(std::any_of(report.next.begin(), report.next.end(), [](const std::string& step) {
    return contains(step, "Look at what rank 3 does alone after the last call of the others");
  }));
}

}  // namespace papaya
