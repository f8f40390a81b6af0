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
  CHECK(contains(report.verdict, "Rank 3 is late: waiting for it costs 9.4 % of the run;"));
  CHECK(contains(report.verdict, "3.00 s after them: 56 % of all ranks' time."));
  CHECK(contains(report.in_short, ", 9.4 % is lost by waiting in collective calls for late ranks,"));
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
