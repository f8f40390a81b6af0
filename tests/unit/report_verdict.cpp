// The sentence at the top, and what the report says about runs that did not end well.
#include <algorithm>

#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

using report::Report;
using support::contains;
using support::Record;

TEST_CASE("verdict: a rank that is late most of the time") {
  auto all = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    all[rank].capacity = 128;
    for (std::uint64_t call = 0; call < 100; ++call) {
      const double begin = 1e7 * static_cast<double>(call);
      const double arrival = begin + (rank == 3 && call < 87 ? 1.92e6 : 0);
      all[rank].add_call(Collective::allreduce, call, arrival, begin + 2e6);
    }
    all[rank].finalize(1e9);
  }
  const Report analysis = support::analyse(all);
  // 87 calls * 3 ranks * 1.92 ms of 4 s.
  CHECK(
      analysis.verdict ==
      "Rank 3 is late: waiting for it costs 13 % of the run; it arrives last at 87 of the 100 MPI_Allreduce calls, by "
      "1.92 ms. If rank 3 computed no longer than the others, the run would take about 833 ms instead of 1.00 s.");
}

TEST_CASE("verdict: why a rank is slow, where the system tells") {
  auto all = support::records(3);
  for (int rank = 0; rank < 3; ++rank) {
    for (std::uint64_t call = 0; call < 10; ++call)
      all[rank].add_call(Collective::allreduce, call, 1e7 * static_cast<double>(call) + (rank == 2 ? 4e6 : 0),
                         1e7 * static_cast<double>(call) + 5e6);
    all[rank].finalize(1e8);
    all[rank].header.usage = {.wall_ns = 100'000'000,
                              .user_ns = 60'000'000,
                              .system_ns = 5'000'000,
                              .core_wait_ns = rank == 2 ? 30'000'000u : 1'000'000u,
                              .voluntary_switches = 7,
                              .involuntary_switches = 20,
                              .minor_faults = 1000,
                              .major_faults = rank == 2 ? 400u : 0u,
                              .peak_bytes = 64 << 20,
                              .core = rank,
                              .core_khz = 2'400'000};
  }
  const std::string no_core =
      "Rank 2 was ready to run but had no core for 30 % of its time (median of the ranks: 1.0 %): look for other "
      "processes "
      "or threads on its cores.";
  Report analysis = support::analyse(all);
  CHECK(contains(analysis.verdict, "Rank 2 is late"));
  CHECK(contains(analysis.verdict, "by 4.00 ms. " + no_core));
  CHECK(contains(report::to_text(analysis), "2 (2.40 GHz)"));
  CHECK(contains(report::to_json(analysis), "\"core_wait_share\": 0.3"));
  // A kernel that does not tell that; then pages from disk.
  for (auto& record : all) record.header.usage.core_wait_ns = ~std::uint64_t{0};
  analysis = support::analyse(all);
  CHECK(contains(analysis.verdict, "Rank 2 waited for 400 pages of memory to be read from disk"));
  CHECK(contains(report::to_text(analysis), "not known"));
  CHECK(contains(report::to_json(analysis), "\"core_wait_share\": null"));
  // What all ranks have makes none of them late.
  for (auto& record : all) record.header.usage.major_faults = 400;
  CHECK(contains(support::analyse(all).verdict, "MPI_Allreduce calls, by 4.00 ms. If rank 2 computed"));
  // Nothing is known of a record whose header ends before.
  for (auto& record : all) record.header.header_bytes = trace::least_header_bytes;
  analysis = support::analyse(all);
  CHECK(!analysis.median_usage.is_known);
  CHECK(contains(report::to_json(analysis), "\"usage\": null"));
  CHECK(!contains(report::to_text(analysis), "peak memory"));
}

TEST_CASE("verdict: balanced arrivals") {
  auto all = support::records(2);
  for (int rank = 0; rank < 2; ++rank) {
    all[rank].add_call(Collective::allreduce, 0, rank * 6000, 10000);
    all[rank].finalize(1e6);
  }
  CHECK(support::analyse(all).verdict == "Arrivals are balanced: waiting for late ranks costs 0.3 % of the run.");
}

TEST_CASE("verdict: a rank that is late but cheap is still named") {
  auto all = support::records(2);
  for (int rank = 0; rank < 2; ++rank) {
    all[rank].add_call(Collective::allreduce, 0, rank * 2e6, 3e6);
    all[rank].finalize(1e9);
  }
  CHECK(support::analyse(all).verdict ==
        "Rank 1 is late but it costs little: it arrives last at the one MPI_Allreduce call, by 2.00 ms; waiting for "
        "late ranks costs 0.1 % of the run.");
}

TEST_CASE("verdict: of many ranks one needs no majority of the waiting to stand out") {
  auto all = support::records(7);
  for (int rank = 0; rank < 7; ++rank) {
    all[rank].capacity = 128;
    for (std::uint64_t call = 0; call < 100; ++call) {
      const double begin = 1e7 * static_cast<double>(call);
      // Rank 6 every other time, the others in turn.
      const int late = call % 2 == 0 ? 6 : static_cast<int>(call / 2 % 6);
      all[rank].add_call(Collective::allreduce, call, begin + (rank == late ? 2e6 : 0), begin + 2e6);
    }
    all[rank].finalize(1e9);
  }
  CHECK(contains(support::analyse(all).verdict, "; it arrives last at 50 of the 100 MPI_Allreduce calls, by 2.00 ms."));
}

TEST_CASE("verdict: a rank that is late at the collective with most waiting, and another at the rest") {
  auto all = support::records(2);
  for (int rank = 0; rank < 2; ++rank) {
    all[rank].capacity = 64;
    for (std::uint64_t call = 0; call < 40; ++call) {
      const double begin = 1e6 * static_cast<double>(call);
      const bool is_barrier = call % 4 == 3;
      const bool is_late = rank == (is_barrier ? 0 : 1);
      all[rank].add_call(is_barrier ? Collective::barrier : Collective::allreduce, call,
                         begin + (is_late ? is_barrier ? 6e5 : 3e5 : 0), begin + 7e5, 0);
    }
    all[rank].finalize(4e7);
  }
  // 60 % of all waiting is for rank 1.
  CHECK(
      support::analyse(all).verdict ==
      "Rank 1 is late: waiting for it costs 11 % of the run, for all late ranks 19 %; it arrives last at all 30 "
      "MPI_Allreduce calls, by 300 µs. If rank 1 computed no longer than the others, the run would take about 31.0 ms "
      "instead of 40.0 ms.");
}

TEST_CASE("verdict: no rank stands out") {
  auto all = support::records(2);
  for (int rank = 0; rank < 2; ++rank) {
    for (std::uint64_t call = 0; call < 10; ++call) {
      const double begin = 10000.0 * static_cast<double>(call);
      const bool late = call % 2 == static_cast<std::uint64_t>(rank);
      all[rank].add_call(Collective::barrier, call, begin + (late ? 4000 : 0), begin + 5000, 0);
    }
    all[rank].finalize(100000);
  }
  CHECK(support::analyse(all).verdict ==
        "Arrivals are imbalanced and no single rank is responsible: waiting for late ranks costs 20 % of the run, the "
        "most at MPI_Barrier, where the longest wait is 4.00 µs on average; of all ranks, rank 0 "
        "causes most, 10 %.");
}

TEST_CASE("verdict: a few ranks of many") {
  auto all = support::records(8);
  for (int rank = 0; rank < 8; ++rank) {
    for (std::uint64_t call = 0; call < 10; ++call) {
      const double begin = 10000.0 * static_cast<double>(call);
      const bool late = rank == (call % 2 == 0 ? 3 : 6);
      all[rank].add_call(Collective::barrier, call, begin + (late ? 4000 : 0), begin + 5000, 0);
    }
    all[rank].finalize(100000);
  }
  CHECK(support::analyse(all).verdict == "Ranks 3, 6 are late: waiting for them costs 35 % of the run.");
}

TEST_CASE("verdict: a late root") {
  auto all = support::records(3);
  for (int rank = 0; rank < 3; ++rank) {
    all[rank].add_call(Collective::bcast, 0, rank == 0 ? 5000 : 0, 6000, 8, 0);
    all[rank].finalize(10000);
  }
  CHECK(
      support::analyse(all).verdict ==
      "Rank 0 is late: waiting for it costs 33 % of the run; as root it keeps the others waiting at the one MPI_Bcast "
      "call, by 5.00 µs. If rank 0 computed no longer than the others, the run would take about 5.00 µs instead of "
      "10.0 µs.");
}

// Each rank up to 20 us late at each call, which no one is to be blamed for.
double noise_ns(std::uint64_t call, int rank) {
  return static_cast<double>((call * 2654435761u + static_cast<std::uint64_t>(rank) * 40503u) % 20011u);
}

// Calls 10 ms apart, `lateness_ns(call, rank)` on top of that noise, each call left when the last has come.
template <class Lateness>
Report noisy_run(int ranks, std::uint64_t calls, Lateness lateness_ns) {
  auto all = support::records(ranks);
  std::vector<double> ready_ns(all.size(), 0.0);
  for (auto& record : all) record.capacity = 512;
  for (std::uint64_t call = 0; call < calls; ++call) {
    double last = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      ready_ns[rank] += 1e7 + noise_ns(call, rank) + lateness_ns(call, rank);
      last = std::max(last, ready_ns[rank]);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      const std::uint32_t site = call == 0 ? all[rank].add_call_site({{"/opt/solve", 0x1234}}) : 1;
      all[rank].add_call(Collective::allreduce, call, ready_ns[rank], last + 1000).call_site = site;
      ready_ns[rank] = last + 1000;
    }
  }
  for (int rank = 0; rank < ranks; ++rank) all[rank].finalize(ready_ns[rank]);
  return support::analyse(all);
}

TEST_CASE("verdict: one late start is no habit") {
  const Report analysis =
      noisy_run(4, 400, [](std::uint64_t call, int rank) { return call == 17 && rank == 1 ? 5e8 : 0; });
  CHECK(analysis.verdict ==
        "One of the 400 calls compared costs 8.3 % of the run: MPI_Allreduce, call 17 on MPI_COMM_WORLD, at "
        "solve+0x1234, where the longest wait was 500 ms, for rank 1. Waiting for late ranks at all other calls costs "
        "less than 0.1 %.");
  REQUIRE(analysis.costly_calls.size() == report::most_costly_calls);
  CHECK(analysis.costly_calls.front().call == 17);
  CHECK(analysis.costly_calls.front().waiting_ns >= 1.499e9);
  CHECK(analysis.costly_calls.front().waiting_ns <= 1.501e9);
  for (std::size_t i = 1; i < analysis.costly_calls.size(); ++i)
    CHECK(analysis.costly_calls[i].waiting_ns <= analysis.costly_calls[i - 1].waiting_ns);
}

TEST_CASE("verdict: a rank that is seldom late by much leads those often last by little") {
  const Report analysis =
      noisy_run(128, 400, [](std::uint64_t call, int rank) { return rank == 7 && call % 200 == 100 ? 1e8 : 0; });
  CHECK(
      contains(analysis.verdict, "2 of the 400 calls compared cost 4.7 % of the run, all for rank 7; the longest is"));
  CHECK(analysis.late_ranks.front().rank == 7);
  CHECK(analysis.late_ranks.front().largest_delay_ns == Approx(1e8).epsilon(0.01));

  // At more calls than can be told one by one.
  const Report often =
      noisy_run(8, 400, [](std::uint64_t call, int rank) { return rank == 7 && call % 16 == 8 ? 1e8 : 0; });
  CHECK(contains(often.verdict, "Rank 7 is late: waiting for it costs 3"));
  CHECK(contains(often.verdict, " MPI_Allreduce calls, 25 of them by 100 ms, else by next to nothing"));

  // And by little, but not by nothing, at all the others.
  const Report mostly =
      noisy_run(8, 400, [](std::uint64_t call, int rank) { return rank == 7 ? call % 11 == 5 ? 2e7 : 1e6 : 0; });
  INFO(mostly.verdict);
  CHECK(
      contains(mostly.verdict, ", at most by 20.0 ms; 28 of them, by about 20.0 ms or more, are half of the waiting"));
}

TEST_CASE("verdict: of 2,000 ranks late at random none is named as late") {
  auto all = support::records(2000);
  std::uint64_t state = 1;
  for (std::uint64_t call = 0; call < 10; ++call)
    for (auto& record : all) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const double begin = 1e6 * static_cast<double>(call);
      record.add_call(Collective::allreduce, call, begin + static_cast<double>(state >> 44), begin + 2e6);
    }
  for (auto& record : all) record.finalize(1e7);
  CHECK(contains(support::analyse(all).verdict, "Arrivals are imbalanced and no single rank is responsible"));
}

TEST_CASE("verdict: the whole run comes first where its beginning is no longer recorded call by call") {
  auto all = support::records(2);
  for (int rank = 0; rank < 2; ++rank) {
    // The ring keeps the last 16.
    for (std::uint64_t call = 0; call < 1000; ++call)
      all[rank].add_call(Collective::allreduce, call, 1e6 * static_cast<double>(call),
                         1e6 * static_cast<double>(call) + 1000);
    all[rank].finalize(2e9);
  }
  trace::NodeCalls calls{};
  calls.communicator = support::world_id;
  calls.rank = 1;
  calls.collective = static_cast<std::uint8_t>(Collective::allreduce);
  calls.used = 1;
  calls.calls = calls.times_last = 1000;
  calls.imbalance_ticks = calls.caused_ticks = support::Record::ticks(1e9) - support::origin_ticks;
  calls.most_ticks = support::Record::ticks(5e8) - support::origin_ticks;
  all[0].node_calls.push_back(calls);
  UNSCOPED_INFO(support::analyse(all).verdict);
  CHECK(support::analyse(all).verdict.rfind(
            "Ranks are late: over the whole run waiting for late ranks costs 25 %, 25 % for rank 1, which arrives last "
            "at 1,000 of the 1,000 calls; the longest wait is 500 ms. Of the calls recorded one by one: arrivals are "
            "balanced: ",
            0) == 0);
}

TEST_CASE("verdict: nothing to compare") {
  auto none = support::records(2);
  for (auto& record : none) record.finalize(1000);
  CHECK(contains(support::analyse(none).verdict, "no collective calls"));

  auto alone = support::records(1);
  alone[0].add_call(Collective::barrier, 0, 0, 10, 0);
  alone[0].finalize(1000);
  CHECK(contains(support::analyse(alone).verdict, "one rank"));

  auto nonblocking = support::records(2);
  for (auto& record : nonblocking) {
    record.add_call(Collective::barrier, 0, 0, 10, 0, -1, support::world_id, Form::nonblocking);
    record.finalize(1000);
  }
  CHECK(contains(support::analyse(nonblocking).verdict, "no blocking collective calls"));

  const support::Folder empty;
  const Report nothing = report::report_on(report::load_run(empty.path()));
  CHECK_FALSE(nothing.usable);
  CHECK(contains(nothing.verdict, "no record"));
}

// Ranks 0 and 1 wait in MPI_Bcast, call 1, for rank 2, which left call 0 and never came.
std::vector<Record> hung() {
  auto all = support::records(3);
  for (int rank = 0; rank < 3; ++rank) all[rank].add_call(Collective::allreduce, 0, 0, 1000);
  all[0].add_call(Collective::bcast, 1, 2000, -1, 8, 2);
  all[1].add_call(Collective::bcast, 1, 7000, -1, 8, 2);
  return all;
}

TEST_CASE("verdict: a hung job names the rank that did not come") {
  const Report analysis = support::analyse(hung());
  CHECK(analysis.partial);
  CHECK_FALSE(analysis.finalized);
  CHECK(support::has_note(analysis, "The job ended without MPI_Finalize"));
  CHECK(analysis.verdict ==
        "Ranks 0-1 were inside MPI_Bcast, call 1 on MPI_COMM_WORLD, when the record ended, and rank 2 had not "
        "arrived "
        "there. Until then, arrivals are balanced: waiting for late ranks costs 0 % of the run.");
  REQUIRE(analysis.pending.size() == 1);
  CHECK(analysis.pending[0].waited_ns == Approx(5000));
  CHECK(analysis.compared_calls == 1);
  CHECK(contains(report::to_text(analysis), "Not arrived: rank 2."));
}

TEST_CASE("verdict: ranks that left a call early are neither inside nor missing") {
  auto all = support::records(3);
  all[0].add_call(Collective::reduce, 0, 0, -1, 8, 0);  // the root
  all[1].add_call(Collective::reduce, 0, 0, 500, 8, 0);
  const Report analysis = support::analyse(all);
  REQUIRE(analysis.pending.size() == 1);
  CHECK(report::to_text(analysis.pending[0].inside) == "0");
  CHECK(report::to_text(analysis.pending[0].not_arrived) == "2");
}

TEST_CASE("verdict: a killed job in which all had arrived is compared as far as it goes") {
  auto all = support::records(2);
  for (int rank = 0; rank < 2; ++rank) {
    all[rank].add_call(Collective::allreduce, 0, rank * 5000, 6000);
    all[rank].add_call(Collective::allreduce, 1, 10000 + rank * 5000, -1);
  }
  const Report analysis = support::analyse(all);
  CHECK(analysis.compared_calls == 2);
  const auto& allreduce = support::figures_of(analysis, "MPI_Allreduce");
  CHECK(allreduce.excess.samples == 2);
  CHECK(contains(analysis.verdict, "Rank 1 is late"));
  CHECK(contains(report::to_text(analysis), "All its ranks had arrived."));
}

TEST_CASE("verdict: ranks that called different collectives") {
  auto all = support::records(2);
  all[0].add_call(Collective::allreduce, 0, 0, -1);
  all[1].add_call(Collective::bcast, 0, 0, -1, 8, 1);
  const Report analysis = support::analyse(all);
  CHECK(analysis.verdict ==
        "Ranks disagree about the collective: at call 0 on MPI_COMM_WORLD, rank 0 called MPI_Allreduce and "
        "rank 1 "
        "called MPI_Bcast with root 1, and the record ends there.");
  CHECK(analysis.compared_calls == 0);
}

TEST_CASE("verdict: an aborted job") {
  auto all = support::records(2);
  for (auto& record : all) record.add_call(Collective::barrier, 0, 0, 100, 0);
  all[0].header.ending = static_cast<std::uint32_t>(trace::Ending::aborted);
  all[0].header.abort_code = 42;
  const Report analysis = support::analyse(all);
  CHECK(analysis.partial);
  CHECK(support::has_note(analysis, "Rank 0 called MPI_Abort with code 42."));
  CHECK(support::has_note(analysis, "without MPI_Finalize on rank 1"));
}

TEST_CASE("verdict: ranks without a record are told and left out") {
  auto all = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    all[rank].add_call(Collective::allreduce, 0, rank == 1 ? 4000 : 0, 5000);
    all[rank].finalize(10000);
  }
  all.erase(all.begin() + 2);
  const Report analysis = support::analyse(all);
  CHECK(analysis.partial);
  CHECK(support::has_note(analysis, "No usable record of rank 2"));
  CHECK(support::has_note(analysis, "may have arrived even later: 1 call."));
  CHECK(analysis.compared_calls == 1);
  CHECK(contains(analysis.verdict, "Of the 3 of 4 ranks read: rank 1 is late"));
}

TEST_CASE("verdict: the root's record is missing") {
  auto all = support::records(3);
  for (int rank = 0; rank < 3; ++rank) all[rank].add_call(Collective::bcast, 0, rank * 1000, 5000, 8, 0);
  all.erase(all.begin());
  const Report analysis = support::analyse(all);
  CHECK(analysis.compared_calls == 1);
  CHECK(analysis.waiting_ns == 0);
}

}  // namespace
}  // namespace papaya
