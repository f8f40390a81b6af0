// The sentence at the top, and what the report says about runs that did not end well.
#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

using report::Report;
using support::Record;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

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
  CHECK(analysis.verdict ==
        "Rank 3 is late: it arrives last at 87 % of the MPI_Allreduce calls, by 1.92 ms on average; waiting "
        "for late "
        "ranks costs 13 % of the run.");
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
        "Rank 1 is late but it costs little: it arrives last at the one MPI_Allreduce call, by 2.00 ms on "
        "average; waiting for late ranks costs 0.1 % of the run.");
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
  CHECK(contains(support::analyse(all).verdict, "Rank 6 is late: it arrives last at 50 % of the MPI_Allreduce calls"));
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
  CHECK(support::analyse(all).verdict ==
        "Rank 1 is late: it arrives last at 100 % of the MPI_Allreduce calls, by 300 µs on average; waiting for late "
        "ranks costs "
        "19 % of the run.");
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
        "Arrivals are imbalanced and no single rank is responsible: at MPI_Barrier the last rank arrives "
        "4.00 µs after "
        "the first on average; the most waiting there, 50 %, is for rank 0; waiting for late ranks costs 20 % of "
        "the run.");
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
  CHECK(support::analyse(all).verdict ==
        "Ranks 3, 6 are late: 100 % of all waiting is for them; waiting for late ranks costs 35 % of the run.");
}

TEST_CASE("verdict: a late root") {
  auto all = support::records(3);
  for (int rank = 0; rank < 3; ++rank) {
    all[rank].add_call(Collective::bcast, 0, rank == 0 ? 5000 : 0, 6000, 8, 0);
    all[rank].finalize(10000);
  }
  CHECK(support::analyse(all).verdict ==
        "Rank 0 is late: it keeps the others waiting at the one MPI_Bcast call as their root, by 5.00 "
        "µs on "
        "average; waiting for late ranks costs 33 % of the run.");
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
