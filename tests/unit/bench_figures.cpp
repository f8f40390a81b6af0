#include "tests/catch.hpp"
#include "tools/bench/limits.hpp"
#include "tools/bench/statistics.hpp"

namespace papaya::bench {

TEST_CASE("mean, median, 99th percentile, maximum") {
  CHECK(summarize({}).max == 0);
  const Summary one = summarize({3});
  CHECK((one.mean == 3 && one.p50 == 3 && one.p99 == 3 && one.max == 3));
  CHECK(median({4, 1, 3}) == 3);
  CHECK(median({4, 1, 3, 2}) == 2.5);
  std::vector<double> hundred;
  for (int i = 100; i > 0; --i) hundred.push_back(i);
  const Summary many = summarize(hundred);
  CHECK((many.mean == 50.5 && many.p50 == 50.5 && many.p99 == 99 && many.max == 100 && many.min == 1));
}

TEST_CASE("when a rank may leave at the earliest") {
  const std::vector<double> arrivals = {5, 9, 2};
  for (const Collective collective :
       {Collective::allreduce, Collective::barrier, Collective::alltoall, Collective::allgather, Collective::alltoallv,
        Collective::allgatherv, Collective::reduce_scatter, Collective::reduce_scatter_block})
    for (int rank = 0; rank < 3; ++rank) CHECK(earliest_exit(collective, arrivals, rank, 0) == 9);
  for (const Collective collective : {Collective::bcast, Collective::scatter, Collective::scatterv}) {
    CHECK(earliest_exit(collective, arrivals, 0, 0) == 5);
    CHECK(earliest_exit(collective, arrivals, 1, 0) == 9);
    CHECK(earliest_exit(collective, arrivals, 2, 0) == 5);
    CHECK(aggregation_of(collective) == Aggregation::mean);
  }
  for (const Collective collective : {Collective::reduce, Collective::gather, Collective::gatherv}) {
    CHECK(earliest_exit(collective, arrivals, 0, 0) == 9);
    CHECK(earliest_exit(collective, arrivals, 1, 0) == 9);
    CHECK(earliest_exit(collective, arrivals, 2, 0) == 2);
    CHECK(aggregation_of(collective) == Aggregation::mean);
  }
}

TEST_CASE("the times of one call") {
  const std::vector<double> arrivals = {5, 9, 2}, exits = {12, 10, 11};
  const CallTimes all = times_of(Collective::allreduce, arrivals, exits, 0);
  CHECK(all.excess == 3);
  CHECK(all.inside == 9);
  CHECK(all.imbalance == 7);
  CHECK(all.first_exit_after_last_arrival == 1);
  CHECK(all.excess_mean == 2);
  const CallTimes rooted = times_of(Collective::reduce, arrivals, exits, 0);
  CHECK(rooted.excess == Approx((3 + 1 + 9) / 3.0));  // the mean
  CHECK(rooted.excess_max == 9);
  CHECK(rooted.root_inside == 7);
  CHECK(rooted.inside == Approx((7 + 1 + 9) / 3.0));
  CHECK(aggregation_of(Collective::bcast) == Aggregation::mean);
  CHECK(aggregation_of(Collective::alltoall) == Aggregation::maximum);
  CHECK(times_of(Collective::barrier, arrivals, std::vector<double>{12, 10, 8}, 0).first_exit_after_last_arrival == -1);
}

namespace {
// 0.1 us a line, 0.01 us each further one; 10 GB/s by one core and 20 GB/s by all, so 1 MB takes 100 and 50
// us.
const Machine machine{0.1, 0.01, {{1000, 40e9, 80e9}, {1000000, 10e9, 20e9}}};
constexpr std::size_t large = 1000000;
}  // namespace

TEST_CASE("the rates that hold for a size") {
  CHECK(machine.rates(8).one_core == 40e9);
  CHECK(machine.rates(1000).all_cores == 80e9);
  CHECK(machine.rates(31623).one_core == Approx(20e9).epsilon(1e-3));
  CHECK(machine.rates(large).one_core == Approx(10e9));
  CHECK(machine.rates(10 * large).all_cores == 20e9);
}

TEST_CASE("limits of small messages") {
  CHECK(limit_us(Collective::barrier, 0, 4, true, machine) == Approx(0.12));
  CHECK(limit_us(Collective::allreduce, 8, 2, true, machine) == Approx(0.1));
  CHECK(limit_us(Collective::allreduce, 8, 4, true, machine) == Approx(0.12));
  CHECK(limit_us(Collective::bcast, 8, 4, false, machine) == Approx(0.075));
  CHECK(limit_us(Collective::reduce, 8, 4, false, machine) == Approx(0.025).margin(0.001));
  CHECK(limit_us(Collective::allreduce, 8, 1, true, machine) == 0);
  CHECK(limit_us(Collective::allreduce, 8, 4, true, Machine{}) == 0);
}

TEST_CASE("limits of large messages, and what a lone last arrival leaves") {
  const auto limit = [](Collective collective, int ranks, bool together) {
    return limit_us(collective, large, ranks, together, machine);
  };
  CHECK(limit(Collective::allreduce, 4, true) == Approx(400));                  // 2pS/B
  CHECK(limit(Collective::allreduce, 4, false) == Approx(200));                 // at most twice as fast
  CHECK(limit(Collective::allgather, 4, true) == Approx(600));                  // p(p-1)S/B
  CHECK(limit(Collective::alltoall, 4, false) == Approx(300));                  // 2(p-1)S/B
  CHECK(limit(Collective::reduce, 4, true) == Approx((250 + 3 * 100) / 4.0));   // (p+1)S/B at the root
  CHECK(limit(Collective::reduce, 4, false) == Approx((150 + 3 * 100) / 4.0));  // 3S/B
  CHECK(limit(Collective::gather, 4, true) == Approx((300 + 3 * 100) / 4.0));   // (p-1)S/B at the root
  CHECK(limit(Collective::gather, 4, false) == Approx(100));
  CHECK(limit(Collective::scatter, 4, false) == Approx(0.75 * 100));
  CHECK(limit(Collective::bcast, 4, true) == Approx(0.75 * 150));
  CHECK(limit(Collective::bcast, 4, false) == Approx(0.75 * 100));
  for (const Collective collective :
       {Collective::allreduce, Collective::reduce, Collective::bcast, Collective::allgather, Collective::alltoall,
        Collective::barrier, Collective::gather, Collective::scatter})
    for (const int ranks : {2, 3, 8})
      for (const std::size_t bytes : {std::size_t{8}, std::size_t{100000}})
        CHECK(limit_us(collective, bytes, ranks, false, machine) <= limit_us(collective, bytes, ranks, true, machine));
}

}  // namespace papaya::bench
