// Every figure against numbers worked out by hand.
#include <cmath>
#include <cstring>

#include "base/mpi_name.hpp"
#include "profiler/read/units.hpp"
#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

using report::Report;
using support::Record;

// Two MPI_Allreduce of four ranks. Call 0: arrivals 0, 1, 2 and 9 us, all leave at 9.5 us. Call 1: three at
// 20 us, one at 24 us, all leave at 24.8 us. The run lasts 100 us.
std::vector<Record> two_allreduces() {
  auto all = support::records(4);
  const double first[] = {0, 1000, 2000, 9000};
  const double second[] = {20000, 20000, 20000, 24000};
  for (int rank = 0; rank < 4; ++rank) {
    all[rank].add_call(Collective::allreduce, 0, first[rank], 9500);
    all[rank].add_call(Collective::allreduce, 1, second[rank], 24800);
    all[rank].finalize(100000);
  }
  return all;
}

TEST_CASE("report: figures of call sites") {
  auto all = two_allreduces();
  for (int rank = 0; rank < 4; ++rank) {
    // Each rank numbers its sites by itself.
    if (rank == 2) all[rank].add_call_site({{"/lib/other.so", 0x99}});
    const std::uint64_t outer = all[rank].add_call_site({{"/bin/app", 0x100}, {"/bin/app", 0x200}});
    const std::uint64_t inner = all[rank].add_call_site({{"/bin/app", 0x300}});
    all[rank].events[0].call_site = outer;
    all[rank].events[1].call_site = inner;
  }
  const Report analysis = support::analyse(all);
  REQUIRE(analysis.call_sites.size() == 2);
  const auto& first = analysis.call_sites[0];  // most waiting first
  CHECK(first.name == "MPI_Allreduce");
  REQUIRE(first.frames.size() == 2);
  CHECK(first.frames[0].module == "/bin/app");
  CHECK(first.frames[0].offset == 0x100);
  CHECK(first.frames[0].build_id == "ab00");
  CHECK(first.frames[1].offset == 0x200);
  CHECK(report::frame_text(first.frames[1]) == "app+0x200");
  CHECK(first.calls == 4);
  CHECK(first.ns == Approx(26000));
  CHECK(first.compared == 1);
  CHECK(first.worst_ns == Approx(9000));
  CHECK(first.waiting_ns == Approx(24000));
  CHECK(first.excess_ns == Approx(2000));
  REQUIRE(first.last.size() == 1);
  CHECK(first.last[0].rank == 3);
  CHECK(first.last[0].times == 1);
  CHECK(analysis.call_sites[1].waiting_ns == Approx(12000));
}

TEST_CASE("report: ranks that make one call from different lines wait each at its own") {
  auto all = two_allreduces();
  for (int rank = 0; rank < 4; ++rank) {
    const std::uint32_t master = all[rank].add_call_site({{"/bin/app", 0x100}});
    const std::uint32_t worker = all[rank].add_call_site({{"/bin/app", 0x200}});
    for (trace::Event& event : all[rank].events) event.call_site = rank == 0 ? master : worker;
  }
  const Report analysis = support::analyse(all);
  REQUIRE(analysis.call_sites.size() == 2);
  for (const report::CallSiteFigures& site : analysis.call_sites) {
    const bool is_master = site.frames.at(0).offset == 0x100;
    CAPTURE(is_master);
    CHECK(site.calls == (is_master ? 2 : 6));
    CHECK(site.compared == 2);
    const double own_ns = support::rank_of(analysis, 0).waited_ns;
    CHECK(site.waiting_ns == Approx(is_master ? own_ns : analysis.waiting_ns - own_ns));
    CHECK(site.waiting_ns <= site.ns);
    REQUIRE(site.last.size() == (is_master ? 0 : 1));
    if (!is_master) CHECK(site.last[0].rank == 3);
  }
}

TEST_CASE("report: ranks that are merely ahead are no imbalance") {
  // The root is 2 ms ahead of the others at a bcast, and 3 ms behind them at a reduce; then it keeps rank 3 waiting for
  // 1 ms at a bcast whose other receivers come later still.
  auto all = support::records(4);
  const double third[] = {11e6, 14e6, 13e6, 10e6};
  for (int rank = 0; rank < 4; ++rank) {
    all[rank].add_call(Collective::bcast, 0, rank == 0 ? 1e6 : 3e6, 3.1e6, 8, 0);
    all[rank].add_call(Collective::reduce, 1, rank == 0 ? 8e6 : 5e6, 8.1e6, 8, 0);
    all[rank].add_call(Collective::gather, 2, rank == 2 ? 9e6 : 8.5e6, 9.1e6, 8, 0);
    all[rank].add_call(Collective::scatter, 3, third[rank], 14.1e6, 8, 0);
    all[rank].finalize(20e6);
  }
  const Report analysis = support::analyse(all);
  for (const char* const name : {"MPI_Bcast", "MPI_Reduce"}) {
    INFO(name);
    const auto& figures = support::figures_of(analysis, name);
    for (const report::Imbalance& imbalance : {figures.imbalance.cluster, figures.imbalance.node}) {
      CHECK(imbalance.calls == 1);
      CHECK(imbalance.worst_ns == 0);
      CHECK(imbalance.average_ns == 0);
      CHECK(imbalance.worst_factor == 0);
    }
    CHECK(figures.waiting_ns == 0);
  }
  // The root waits for rank 2 alone, and rank 3 for the root: one of four waits.
  const auto& gather = support::figures_of(analysis, "MPI_Gather").imbalance.cluster;
  CHECK(gather.worst_ns == Approx(0.5e6));
  CHECK(gather.average_ns == Approx(0.5e6 * (0.75 + 3 * 0.25) / 4));
  const auto& scatter = support::figures_of(analysis, "MPI_Scatter").imbalance.cluster;
  CHECK(scatter.worst_ns == Approx(1e6));
  CHECK(scatter.average_ns == Approx(1e6 * (0.75 + 3 * 0.25) / 4));
}

TEST_CASE("report: within a node its ranks are compared as if they made the call alone") {
  // Ranks 0 and 1 on node 0, 2 and 3 on node 1, which wait for the root, rank 0; rank 1 comes later than it.
  std::vector<Record> all;
  for (int rank = 0; rank < 4; ++rank) all.emplace_back(rank, 4, rank / 2, 2);
  const double arrivals[] = {3e6, 5e6, 1e6, 2e6};
  for (int rank = 0; rank < 4; ++rank) {
    all[rank].add_communicator(support::world_id, 4, rank, "MPI_COMM_WORLD");
    all[rank].add_call(Collective::bcast, 0, arrivals[rank], 6e6, 8, 0);
    all[rank].add_call(Collective::allreduce, 1, 1e7 + arrivals[rank], 2e7, 8);
    all[rank].finalize(3e7);
  }
  const Report analysis = support::analyse(all);
  const auto& bcast = support::figures_of(analysis, "MPI_Bcast").imbalance;
  CHECK(bcast.cluster.worst_ns == Approx(2e6));
  CHECK(bcast.node.worst_ns == 0);
  const auto& allreduce = support::figures_of(analysis, "MPI_Allreduce").imbalance;
  CHECK(allreduce.cluster.worst_ns == Approx(4e6));
  CHECK(allreduce.cluster.average_ns == Approx((0.25 + 2.25 + 1.75 + 0.75) / 4 * 1e6));
  CHECK(allreduce.node.worst_ns == Approx((2e6 + 1e6) / 2));
  CHECK(allreduce.node.average_ns == Approx((1e6 + 0.5e6) / 2));
}

TEST_CASE("report: the straggler of a call site is who was waited for") {
  // Root 0 is 2 ms behind rank 1, whose bcast it is; rank 2 comes last, and nobody waits for it.
  const double arrivals[] = {3e6, 1e6, 5e6};
  auto all = support::records(3);
  for (int rank = 0; rank < 3; ++rank) {
    all[rank].add_call_site({{"app", 0x20}});
    all[rank].capacity = 64;
    for (std::uint64_t call = 0; call < 40; ++call)
      all[rank]
          .add_call(Collective::bcast, call, 1e7 * static_cast<double>(call) + arrivals[rank],
                    1e7 * static_cast<double>(call + 1), 8, 0)
          .call_site = 1;
    all[rank].finalize(5e8);
  }
  const Report analysis = support::analyse(all);
  REQUIRE(analysis.call_sites.size() == 1);
  CHECK(analysis.call_sites[0].pattern.pattern == report::PatternClass::persistent);
  CHECK(analysis.call_sites[0].pattern.straggler() == 0);
  CHECK(analysis.call_sites[0].worst_ns == Approx(2e6));
}

TEST_CASE("call sites: each communicator that a site serves has its own straggler") {
  auto all = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    Record& record = all[rank];
    record.capacity = 64;
    const std::uint64_t pair = 70 + static_cast<std::uint64_t>(rank) / 2;
    record.add_communicator(pair, 2, rank % 2, "pair");
    record.add_call_site({{"app", 0x10}});
    for (std::uint64_t call = 0; call < 30; ++call) {
      const double begin = 2e6 * static_cast<double>(call);
      const bool is_late = rank == 1 || rank == 2;
      record.add_call(Collective::allreduce, call, begin + (is_late ? 1e6 : 0), begin + 1.01e6, 8, -1, pair).call_site =
          1;
    }
    record.finalize(60e6);
  }
  const Report analysis = support::analyse(all);
  CHECK(support::contains(to_text(analysis), "persistent straggler, each of 2 communicators has its own: rank"));
  CHECK(analysis.call_sites.at(0).pattern.straggling_ranks() == std::vector<std::int32_t>{1, 2});
  const std::string json = to_json(analysis);
  CHECK(support::contains(json, "\"straggler\": null"));
  CHECK(support::contains(json, "\"straggler_communicators\": 2"));
}

TEST_CASE("report: imbalance, factors, waiting and excess of an allreduce") {
  auto all = two_allreduces();
  all[0].header.alpha[0] = {8, 500, 0};
  const Report analysis = support::analyse(all);
  REQUIRE(analysis.usable);
  CHECK(analysis.finalized);
  CHECK_FALSE(analysis.partial);
  CHECK_FALSE(analysis.alpha_nominal);
  CHECK(analysis.compared_calls == 2);
  const auto& allreduce = support::figures_of(analysis, "MPI_Allreduce");
  CHECK(allreduce.calls == 8);
  CHECK(allreduce.bytes == 64);
  // Inside: 9.5 + 8.5 + 7.5 + 0.5 and 3 * 4.8 + 0.8 us.
  CHECK(allreduce.ns == Approx(26000 + 15200));
  // Call 0: mean 3 us, |a - mean| = 3, 2, 1, 6. Call 1: mean 21 us, 1, 1, 1, 3.
  const auto& imbalance = allreduce.imbalance.cluster;
  CHECK(imbalance.calls == 2);
  CHECK(imbalance.worst_ns == Approx((9000 + 4000) / 2.0));
  CHECK(imbalance.average_ns == Approx((3000 + 1500) / 2.0));
  CHECK(imbalance.worst_factor == Approx((18 + 8) / 2.0));
  CHECK(imbalance.average_factor == Approx((6 + 3) / 2.0));
  // One node: node-wide is the same.
  CHECK(allreduce.imbalance.node.worst_ns == Approx(6500));
  CHECK(allreduce.imbalance.node.average_factor == Approx(4.5));
  CHECK(allreduce.waiting_ns == Approx(9000 + 8000 + 7000 + 3 * 4000));
  CHECK(allreduce.inside.samples == 8);
  CHECK(allreduce.inside.mean_ns == Approx(41200 / 8.0));
  CHECK(allreduce.inside.max_ns == Approx(9500));
  CHECK(allreduce.excess.mean_ns == Approx(650));
  CHECK(allreduce.excess.p50_ns == Approx(500));
  CHECK(allreduce.excess.p99_ns == Approx(800));
  CHECK(allreduce.excess.max_ns == Approx(800));
  CHECK(analysis.waiting_ns == Approx(36000));
  CHECK(analysis.recorded_ns == Approx(400000));
  CHECK(analysis.waiting_share == Approx(0.09));
  CHECK(analysis.run_ns == Approx(100000));
}

TEST_CASE("report: who is late") {
  const Report analysis = support::analyse(two_allreduces());
  REQUIRE(analysis.late_ranks.size() == 4);
  CHECK(analysis.late_ranks.front().rank == 3);
  const auto& late = support::rank_of(analysis, 3);
  CHECK(late.times_last == 2);
  CHECK(late.compared == 2);
  CHECK(late.late_ns == Approx(6500));
  CHECK(late.waited_ns == Approx(0));
  CHECK(late.caused_ns == Approx(36000));
  const auto& punctual = support::rank_of(analysis, 1);
  CHECK(punctual.times_last == 0);
  CHECK(punctual.late_ns == Approx(500));
  CHECK(punctual.waited_ns == Approx(8000 + 4000));
  CHECK(punctual.caused_ns == Approx(0));
  CHECK(
      analysis.verdict ==
      "Rank 3 is late: waiting for it costs 9.0 % of the run; it arrives last at both MPI_Allreduce calls, typically "
      "by 4.00 µs, at most by 9.00 µs. If rank 3 computed no longer than the others, the run would take about 89.0 µs "
      "instead of 100 µs.");
}

TEST_CASE("report: a margin within the clock's resolution makes nobody last") {
  auto all = support::records(2);
  for (int rank = 0; rank < 2; ++rank) {
    all[rank].add_call(Collective::barrier, 0, rank * 300, 1000);
    all[rank].add_call(Collective::barrier, 1, 2000 + rank * 301, 3000);
  }
  const Report analysis = support::analyse(all);
  CHECK(support::rank_of(analysis, 1).times_last == 1);
  CHECK(support::rank_of(analysis, 0).times_last == 0);
}

TEST_CASE("report: alpha is interpolated on logarithmic scales") {
  auto all = support::records(2);
  all[0].header.alpha[0] = {1024, 1000, 0};
  all[0].header.alpha[1] = {1024 * 1024, 1000000, 0};
  // 2^15 lies midway between 2^10 and 2^20: sqrt(1000 * 1000000).
  for (int rank = 0; rank < 2; ++rank) all[rank].add_call(Collective::allreduce, 0, rank * 31622.5, 50000, 32768);
  const auto midway = support::analyse(all);
  CHECK(support::figures_of(midway, "MPI_Allreduce").imbalance.cluster.worst_factor == Approx(1).epsilon(1e-4));

  // Below the smallest size the smallest message's time.
  all = support::records(2);
  all[1].header.alpha[0] = {1024, 1000, 0};
  all[1].header.alpha[1] = {1024 * 1024, 1000000, 0};
  for (int rank = 0; rank < 2; ++rank) all[rank].add_call(Collective::barrier, 0, rank * 7000, 50000, 0);
  const auto below = support::analyse(all);
  CHECK(support::figures_of(below, "MPI_Barrier").imbalance.cluster.worst_factor == Approx(7));

  // Beyond the largest its segment goes on: the slope here is log(1000)/log(1024), 2^30 takes 1e9 ns.
  all = support::records(2);
  all[0].header.alpha[0] = {1024, 1000, 0};
  all[0].header.alpha[1] = {1024 * 1024, 1000000, 0};
  for (int rank = 0; rank < 2; ++rank) all[rank].add_call(Collective::bcast, 0, rank * 2e9, 3e9, 1u << 30, 1);
  const auto beyond = support::analyse(all);
  CHECK(support::figures_of(beyond, "MPI_Bcast").imbalance.cluster.worst_factor == Approx(2));
}

TEST_CASE("report: a nominal alpha is used and told where none was measured") {
  auto all = support::records(2);
  for (int rank = 0; rank < 2; ++rank) all[rank].add_call(Collective::allreduce, 0, rank * 6000, 9000, 5000);
  const Report analysis = support::analyse(all);
  CHECK(analysis.alpha_nominal);
  CHECK(support::has_note(analysis, "nominal"));
  // 1 us + 5000 B / (5 B/ns) = 2 us.
  CHECK(support::figures_of(analysis, "MPI_Allreduce").imbalance.cluster.worst_factor == Approx(3));
}

trace::ClockOffset offset_to_node_0(std::int64_t ns, std::uint64_t error_ns, double at_ns) {
  return {ns, error_ns, Record::ticks(at_ns), 1, ns, error_ns, 50000, 0, 0};
}

// Ranks 0 and 1 on node 0, ranks 2 and 3 on node 1, whose clock lags by 1 us at 0 and by 3 us at 10 ms.
std::vector<Record> two_nodes() {
  std::vector<Record> all;
  for (int rank = 0; rank < 4; ++rank) {
    const int node = rank / 2;
    all.emplace_back(rank, 4, node, 2);
    all.back().add_communicator(support::world_id, 4, rank, "MPI_COMM_WORLD");
    if (node == 0) continue;
    all.back().header.clock[0] = offset_to_node_0(1000, 100, 0);
    all.back().header.clock[1] = offset_to_node_0(3000, 200, 1e7);
  }
  return all;
}

TEST_CASE("report: the clocks of nodes are brought together") {
  auto all = two_nodes();
  all[0].header.alpha[0] = {8, 500, 2000};
  // On node 0's clock 5000 and 5001 us, and, offset by 2 us halfway, 5002 and 5000.5 + 2.0001 us.
  all[0].add_call(Collective::allreduce, 0, 5000000, 5010000);
  all[1].add_call(Collective::allreduce, 0, 5001000, 5010000);
  all[2].add_call(Collective::allreduce, 0, 5000000, 5010000);
  all[3].add_call(Collective::allreduce, 0, 5000500, 5010000);
  const Report analysis = support::analyse(all);
  CHECK(analysis.clock_measured);
  CHECK(analysis.clock_error_ns == Approx(200));
  const auto& imbalance = support::figures_of(analysis, "MPI_Allreduce").imbalance;
  CHECK(imbalance.cluster.worst_ns == Approx(2500.1).epsilon(1e-7));
  CHECK(imbalance.cluster.worst_factor == Approx(2500.1 / 2000).epsilon(1e-7));
  // Within nodes 1 us, and 0.5 us to which the drift adds 0.1 ns.
  CHECK(imbalance.node.worst_ns == Approx((1000 + 500.1) / 2).epsilon(1e-7));
  CHECK(imbalance.node.average_ns == Approx((500 + 250.05) / 2).epsilon(1e-7));
  CHECK(imbalance.node.worst_factor == Approx(750.05 / 500).epsilon(1e-7));
  CHECK(support::rank_of(analysis, 3).times_last == 1);
}

// Node 1 against node 0, then node 2 against node 0 and node 3 against node 1.
TEST_CASE("report: clocks are brought together by way of their references") {
  // t on node 0's clock: 1.00005 t + 1 ms on node 1's, as 0.9999 t' - 2 ms of that on node 3's.
  const auto on_node_1 = [](double t) { return 1.00005 * t + 1e6; };
  const auto on_node_3 = [&](double t) { return 0.9999 * on_node_1(t) - 2e6; };
  std::vector<Record> all;
  for (int rank = 0; rank < 4; ++rank) {
    all.emplace_back(rank, 4, rank, 4);
    all.back().add_communicator(support::world_id, 4, rank, "MPI_COMM_WORLD");
  }
  const auto compare = [](trace::ClockOffset& clock, int reference, double own, double its, std::uint64_t error) {
    clock = {};
    clock.measured = 1;
    clock.reference = reference;
    clock.at_ticks = Record::ticks(own);
    clock.to_reference_ns = std::llround(its - own);
    clock.reference_error_ns = error;
    clock.bound_ns = 60000;
    clock.offset_ns = 7;  // not what counts
  };
  const double when[2] = {1e7, 9e9};
  for (int i = 0; i < 2; ++i) {
    compare(all[1].header.clock[i], 0, on_node_1(when[i]), when[i], 300);
    // Later than that, as a second round is.
    compare(all[2].header.clock[i], 0, when[i] + 2e7, when[i] + 2e7, 100);
    compare(all[3].header.clock[i], 1, on_node_3(when[i] + 2e7), on_node_1(when[i] + 2e7), 500);
  }
  const double at = 4e9;
  all[0].add_call(Collective::allreduce, 0, at, at + 1e5);
  all[1].add_call(Collective::allreduce, 0, on_node_1(at + 2000), on_node_1(at + 1e5));
  all[2].add_call(Collective::allreduce, 0, at + 1000, at + 1e5);
  all[3].add_call(Collective::allreduce, 0, on_node_3(at + 5000), on_node_3(at + 1e5));
  SECTION("with all records") {
    const Report analysis = support::analyse(all);
    CHECK(support::figures_of(analysis, "MPI_Allreduce").imbalance.cluster.worst_ns == Approx(5000).margin(5));
    CHECK(analysis.clock_error_ns == Approx(800));
    CHECK(analysis.clock_bound_ns == Approx(60000));
  }
  SECTION("without the reference's, by the sum that was made during the run") {
    for (trace::ClockOffset& clock : all[3].header.clock) {
      clock.offset_ns = 42;
      clock.error_ns = 900;
    }
    all.erase(all.begin() + 1);
    const Report analysis = support::analyse(all);
    CHECK(analysis.clock_error_ns == Approx(900));
    CHECK(analysis.clock_measured);
  }
}

TEST_CASE("report: one clock offset is used as it is, and said") {
  auto all = two_nodes();
  for (int rank = 2; rank < 4; ++rank) all[rank].header.clock[1] = {};
  for (int rank = 0; rank < 4; ++rank) all[rank].add_call(Collective::allreduce, 0, 500000, 510000);
  const Report analysis = support::analyse(all);
  CHECK(support::figures_of(analysis, "MPI_Allreduce").imbalance.cluster.worst_ns == Approx(1000));
  // 100 ppm of drift are allowed for, to the last exit.
  CHECK(analysis.clock_error_ns == Approx(100 + 51));
  CHECK(analysis.clock_bound_ns == Approx(50000));
  CHECK(support::has_note(analysis, "compared only once"));
}

TEST_CASE(
    "report: without clock offsets the wall clocks serve, and nobody on another node is called last by "
    "little") {
  auto all = two_nodes();
  for (int rank = 2; rank < 4; ++rank) {
    all[rank].header.clock[0] = {};
    all[rank].header.clock[1] = {};
    all[rank].header.begin_unix_ns += 5000;
  }
  for (int rank = 0; rank < 4; ++rank)
    all[rank].add_call(Collective::allreduce, 0, rank == 3 ? 501000 : 500000, 510000);
  const Report analysis = support::analyse(all);
  CHECK_FALSE(analysis.clock_measured);
  // begin_unix_ns is a wall clock of 1.7e18 ns: a double resolves 256 ns of it.
  CHECK(support::figures_of(analysis, "MPI_Allreduce").imbalance.cluster.worst_ns == Approx(6000).margin(300));
  CHECK(support::has_note(analysis, "never compared"));
  CHECK(support::rank_of(analysis, 3).times_last == 1);  // its neighbour on its own node was second
}

TEST_CASE("report: a margin within the clock error between nodes makes nobody last") {
  auto all = two_nodes();
  for (int rank = 0; rank < 3; ++rank) all[rank].add_call(Collective::barrier, 0, 500000, 510000, 0);
  all[3].add_call(Collective::barrier, 0, 400000, 510000, 0);
  for (int rank = 2; rank < 4; ++rank) {
    all[rank].header.clock[0].reference_error_ns = 3000;  // rank 2 is 2 us later than node 0, known to within 3 us
  }
  const Report analysis = support::analyse(all);
  CHECK(support::rank_of(analysis, 2).times_last == 0);
}

struct Rooted {
  Collective collective;
  double waits_ns[3];
};

TEST_CASE("report: waiting and excess follow who needs whom") {
  // Ranks arrive at 0, 2 and 5 us, the root is rank 1, all leave at 10 us.
  const Rooted cases[] = {
      {Collective::allreduce, {5000, 3000, 0}},
      {Collective::barrier, {5000, 3000, 0}},
      {Collective::alltoall, {5000, 3000, 0}},
      {Collective::allgatherv, {5000, 3000, 0}},
      {Collective::bcast, {2000, 0, 0}},
      {Collective::scatter, {2000, 0, 0}},
      {Collective::scatterv, {2000, 0, 0}},
      {Collective::reduce, {0, 3000, 0}},
      {Collective::gather, {0, 3000, 0}},
      {Collective::gatherv, {0, 3000, 0}},
      {Collective::scan, {0, 0, 0}},
      {Collective::exscan, {0, 0, 0}},
  };
  for (const Rooted& expected : cases) {
    CAPTURE(name_of(expected.collective));
    auto all = support::records(3);
    const double arrivals[] = {0, 2000, 5000};
    double waiting = 0;
    double inside = 0;
    for (int rank = 0; rank < 3; ++rank) {
      all[rank].add_call(expected.collective, 0, arrivals[rank], 10000, 8, 1);
      waiting += expected.waits_ns[rank];
      inside += 10000 - arrivals[rank];
    }
    const Report analysis = support::analyse(all);
    const auto& figures = support::figures_of(analysis, mpi_name(expected.collective, Form::blocking));
    CHECK(figures.waiting_ns == Approx(waiting));
    CHECK(figures.excess.mean_ns == Approx((inside - waiting) / 3));
    for (int rank = 0; rank < 3; ++rank) {
      CHECK(support::rank_of(analysis, rank).waited_ns == Approx(expected.waits_ns[rank]));
    }
  }
}

TEST_CASE("report: a scan waits for lower ranks, and the root is found by its rank in the communicator") {
  auto all = support::records(3);
  // Rank 0 arrives last: both others wait for it.
  all[0].add_call(Collective::scan, 0, 4000, 9000);
  all[1].add_call(Collective::scan, 0, 1000, 9000);
  all[2].add_call(Collective::scan, 0, 2000, 9000);
  const Report scan = support::analyse(all);
  CHECK(support::rank_of(scan, 1).waited_ns == Approx(3000));
  CHECK(support::rank_of(scan, 2).waited_ns == Approx(2000));
  CHECK(support::rank_of(scan, 0).caused_ns == Approx(5000));

  // A communicator in the opposite order: root 0 is rank 2 of the world.
  all = support::records(3);
  const double arrivals[] = {0, 0, 6000};
  for (int rank = 0; rank < 3; ++rank) {
    all[rank].add_communicator(77, 3, 2 - rank, "reversed");
    all[rank].add_call(Collective::bcast, 0, arrivals[rank], 7000, 8, 0, 77);
  }
  const Report bcast = support::analyse(all);
  CHECK(support::rank_of(bcast, 2).caused_ns == Approx(12000));
}

TEST_CASE("report: a root that runs ahead of the receivers of its bcast makes them late for nobody") {
  auto all = support::records(3);
  for (int rank = 0; rank < 3; ++rank) {
    for (std::uint64_t call = 0; call < 10; ++call) {
      const double begin = 1e6 * static_cast<double>(call);
      const double arrival = begin + (rank == 0 ? 0 : 5e5);
      all[rank].add_call(Collective::bcast, call, arrival, arrival + 1000);
    }
    all[rank].finalize(1e7);
  }
  const Report analysis = support::analyse(all);
  const std::string text = report::to_text(analysis);
  // Imbalance by its definition, but it costs nothing.
  CHECK(text.find("500 µs") != std::string::npos);
  CHECK(text.find("average-case  factor  waiting\n") != std::string::npos);
  CHECK(text.find("  0 ns\n") != std::string::npos);
  CHECK(analysis.verdict == "In collective calls nobody waits long: waiting for late ranks costs 0 % of the run.");
}

TEST_CASE("report: size classes and forms") {
  auto all = support::records(2);
  for (int rank = 0; rank < 2; ++rank) {
    auto& record = all[rank];
    record.add_call(Collective::allreduce, 0, rank * 1000, 2000, 1024);
    record.add_call(Collective::allreduce, 1, 10000 + rank * 2000, 14000, 1025);
    record.add_call(Collective::allreduce, 2, 20000 + rank * 3000, 26000, 1024 * 1024 + 1);
    record.add_call(Collective::allreduce, 3, 30000, 31000, 8, -1, support::world_id, Form::nonblocking);
    record.add_call(Collective::reduce_scatter_block, 4, 32000, 33000, 8, -1, support::world_id, Form::persistent);
  }
  const Report analysis = support::analyse(all);
  const auto& allreduce = support::figures_of(analysis, "MPI_Allreduce");
  CHECK(allreduce.calls == 6);
  for (const auto& size : allreduce.by_size) CHECK(size.calls == 2);
  CHECK(allreduce.by_size[0].ns == Approx(2000 + 1000));
  CHECK(allreduce.by_size[1].ns == Approx(4000 + 2000));
  CHECK(allreduce.by_size[2].bytes == 2 * (1024 * 1024 + 1));
  CHECK(allreduce.by_size[0].imbalance.cluster.worst_ns == Approx(1000));
  CHECK(allreduce.by_size[1].imbalance.cluster.worst_ns == Approx(2000));
  CHECK(allreduce.by_size[2].imbalance.cluster.worst_ns == Approx(3000));
  CHECK(allreduce.imbalance.cluster.worst_ns == Approx(2000));
  const auto& nonblocking = support::figures_of(analysis, "MPI_Iallreduce");
  CHECK(nonblocking.calls == 2);
  CHECK(nonblocking.imbalance.cluster.calls == 0);
  CHECK(support::figures_of(analysis, "MPI_Reduce_scatter_block_init").calls == 2);
  CHECK(analysis.compared_calls == 3);
}

TEST_CASE("report: totals stay exact when the ring has wrapped") {
  auto all = support::records(2);
  for (int rank = 0; rank < 2; ++rank) {
    for (std::uint64_t call = 0; call < 40; ++call) {
      const double begin = 10000.0 * static_cast<double>(call);
      // Early calls are off by 5 us, those still in the ring of 16 by 1 us.
      all[rank].add_call(Collective::barrier, call, begin + rank * (call < 20 ? 5000 : 1000), begin + 6000, 0);
    }
    all[rank].finalize(400000);
  }
  const Report analysis = support::analyse(all);
  const auto& barrier = support::figures_of(analysis, "MPI_Barrier");
  CHECK(barrier.calls == 80);
  CHECK(barrier.imbalance.cluster.calls == 16);
  CHECK(barrier.imbalance.cluster.worst_ns == Approx(1000));
  CHECK(analysis.events_begun == 80);
  CHECK(analysis.events_kept == 32);
  CHECK(support::has_note(analysis, "the last 32 of 80 calls"));
  CHECK_FALSE(analysis.partial);
  // Rank 1's ring begins last, at call 24: 241 us. What was recorded since is 2 * 159 us.
  CHECK(analysis.recorded_ns == Approx(2 * 159000));
  CHECK(analysis.waiting_share == Approx(16000 / 318000.0));
}

TEST_CASE("report: rings that hold different parts of the run are compared where they overlap") {
  auto all = support::records(2);
  all[1].add_communicator(5, 1, 0, "MPI_COMM_SELF");
  for (int rank = 0; rank < 2; ++rank) {
    for (std::uint64_t call = 0; call < 20; ++call) {
      const double begin = 10000.0 * static_cast<double>(call);
      all[rank].add_call(Collective::barrier, call, begin, begin + 1000, 0);
      if (rank == 1) all[rank].add_call(Collective::barrier, call, begin + 2000, begin + 3000, 0, -1, 5);
    }
  }
  const Report analysis = support::analyse(all);
  CHECK(analysis.compared_calls == 8);
  CHECK_FALSE(support::has_note(analysis, "Not compared"));
}

TEST_CASE("report: calls are summed up by the phases that the program names") {
  auto all = two_allreduces();
  for (Record& record : all) {
    // Each rank numbers them as it comes to them.
    const int solve = record.header.rank % 2 == 0 ? 1 : 2;
    record.header.phase_count = 3;
    std::strcpy(record.header.phase_names[solve], "solve");
    std::strcpy(record.header.phase_names[3 - solve], "unused");
    record.events[1].phase = static_cast<std::uint16_t>(solve);
  }
  const Report analysis = support::analyse(all);
  REQUIRE(analysis.phases.size() == 2);
  // Waiting of call 0: 9 + 8 + 7 us, of call 1: 3 times 4.
  CHECK(analysis.phases[0].name.empty());
  CHECK(analysis.phases[0].waiting_ns == Approx(24000));
  const report::PhaseFigures& solve = analysis.phases[1];
  CHECK(solve.name == "solve");
  CHECK(solve.calls == 4);
  CHECK(solve.compared == 1);
  CHECK(solve.worst_ns == Approx(4000));
  CHECK(solve.waiting_ns == Approx(12000));
  CHECK(solve.excess_ns == Approx(4 * 800));
  CHECK(solve.ns == Approx(3 * 4800 + 800));
}

TEST_CASE("report: algorithms and reasons are told by name") {
  auto all = support::records(2);
  const auto allreduce = index_of(Collective::allreduce);
  for (auto& record : all) {
    record.algorithms[0].calls[allreduce] = 10;
    record.algorithms[1].calls[allreduce] = 50;
    record.totals.native_calls_by_reason[allreduce][1] = 7;
    record.totals.native_calls_by_reason[allreduce][2] = 1;
  }
  // Ranks may number their algorithms differently.
  all[1].algorithms.insert(all[1].algorithms.begin() + 1, trace::Algorithm{});
  const Report analysis = support::analyse(all);
  REQUIRE(analysis.algorithms.size() == 4);
  const auto check = [&](std::size_t i, const char* algorithm, const char* reason, std::uint64_t calls) {
    CHECK(analysis.algorithms[i].collective == "MPI_Allreduce");
    CHECK(analysis.algorithms[i].algorithm == algorithm);
    CHECK(analysis.algorithms[i].reason == reason);
    CHECK(analysis.algorithms[i].calls == calls);
  };
  check(0, "flat", "", 100);
  check(1, "native", "too large", 14);
  check(2, "native", "", 4);
  check(3, "native", "device memory", 2);
}

TEST_CASE("report: an old record's algorithms and reasons have today's names") {
  auto all = support::records(2);
  std::strcpy(all[0].header.reason_names[3], "the communicator has made too few calls yet");
  std::strcpy(all[1].header.reason_names[3], "the communicator has made too few calls so far");
  for (auto& record : all) record.algorithms[0].calls[index_of(Collective::allreduce)] = 4;
  for (auto& record : all) record.totals.native_calls_by_reason[index_of(Collective::allreduce)][3] = 4;
  std::strcpy(all[0].algorithms[1].name, "rsa");
  std::strcpy(all[1].algorithms[1].name, "rabenseifner");
  for (auto& record : all) record.algorithms[1].calls[index_of(Collective::allreduce)] = 10;
  const Report analysis = support::analyse(all);
  REQUIRE(analysis.algorithms.size() == 2);
  CHECK(analysis.algorithms[0].algorithm == "rabenseifner");
  CHECK(analysis.algorithms[0].calls == 20);
  CHECK(analysis.algorithms[1].reason == "the communicator has made too few calls so far");
  CHECK(analysis.algorithms[1].calls == 8);
}

TEST_CASE("report: communicators are compared each by itself") {
  auto all = support::records(4);
  for (int rank = 0; rank < 4; ++rank) {
    const std::uint64_t id = rank < 2 ? 10 : 11;
    all[rank].add_communicator(id, 2, rank % 2, rank < 2 ? "left" : "right");
    all[rank].add_call(Collective::allreduce, 0, rank < 2 ? rank * 1000 : 50000 + rank * 500, 60000, 8, -1, id);
  }
  const Report analysis = support::analyse(all);
  CHECK(analysis.compared_calls == 2);
  CHECK(support::figures_of(analysis, "MPI_Allreduce").imbalance.cluster.worst_ns == Approx(750));
  REQUIRE(analysis.communicators.size() == 3);
  CHECK(analysis.communicators[0].name == "left");
  CHECK(analysis.communicators[0].worst_ns == Approx(1000));
  CHECK(analysis.communicators[1].name == "right");
  CHECK(analysis.communicators[1].waiting_ns == Approx(500));
}

TEST_CASE("report: two communicators with one identity are left out") {
  auto all = support::records(2);
  for (int rank = 0; rank < 2; ++rank) {
    all[rank].add_communicator(10, 2, 0, "twins");  // both claim rank 0
    all[rank].add_call(Collective::barrier, 0, rank * 1000, 2000, 0, -1, 10);
  }
  const Report analysis = support::analyse(all);
  CHECK(analysis.compared_calls == 0);
  CHECK(support::has_note(analysis, "cannot be told apart"));
}

}  // namespace
}  // namespace papaya
