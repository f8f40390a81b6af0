// How much shorter a run would be with quicker ranks: recorded runs replayed, beside the runs as they would have been.
#include "profiler/analysis/what_if.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

using report::Report;
using support::contains;
using support::Record;

constexpr double ms = 1e6;
constexpr double exit_ns = 10e3;  // after the earliest legal one

// Ranks that compute, send messages and meet in calls, and the records of that.
class World {
 public:
  explicit World(int ranks) : records_(support::records(ranks)), now_ns_(ranks), waited_ns_(ranks), waits_(ranks) {
    for (Record& record : records_) {
      record.capacity = 2048;
      for (std::uint64_t site = 1; site <= 3; ++site) record.add_call_site({{"app", 0x10 * site}});
    }
  }
  int size() const { return static_cast<int>(records_.size()); }
  Record& operator[](int rank) { return records_[rank]; }
  double now_ns(int rank) const { return now_ns_[rank]; }

  void compute(int rank, double ns) { now_ns_[rank] += ns; }
  // `to` waits until it is there. Whom it waits for is recorded, or not.
  void message(int from, int to, bool is_known = true) {
    const double wait_ns = std::max(0.0, now_ns_[from] - now_ns_[to]);
    now_ns_[to] += wait_ns;
    waited_ns_[to] += wait_ns;
    waits_[to] = {wait_ns, is_known ? from : -1};
  }
  void call(Collective collective, std::uint32_t site, int root = -1) {
    const std::vector<double> arrivals = now_ns_;
    const double last = *std::max_element(arrivals.begin(), arrivals.end());
    for (int rank = 0; rank < size(); ++rank) {
      if (collective == Collective::bcast)
        now_ns_[rank] = std::max(arrivals[rank], arrivals[root]);
      else if (collective == Collective::reduce)
        now_ns_[rank] = rank == root ? last : arrivals[rank];
      else
        now_ns_[rank] = last;
      now_ns_[rank] += exit_ns;
      records_[rank].add_call(collective, calls_, arrivals[rank], now_ns_[rank], 8, root).call_site = site;
      if (waits_[rank].first > 0) records_[rank].add_interval(waits_[rank].first, 0, waits_[rank].second);
      waits_[rank] = {};
    }
    ++calls_;
  }
  Report report() {
    for (int rank = 0; rank < size(); ++rank) {
      if (records_[rank].timed.empty())
        records_[rank].add_timed("MPI_Recv", MpiKind::point_to_point, 1, waited_ns_[rank]);
      records_[rank].finalize(now_ns_[rank]);
    }
    return support::analyse(records_);
  }
  double run_ns() const { return *std::max_element(now_ns_.begin(), now_ns_.end()); }

 private:
  std::vector<Record> records_;
  std::vector<double> now_ns_;
  std::vector<double> waited_ns_;
  std::vector<std::pair<double, int>> waits_;
  std::uint64_t calls_ = 0;
};

double gain_of(const Report& report, std::int32_t rank) {
  for (const auto& one : report.what_if.ranks)
    if (one.rank == rank) return one.ns;
  return 0;
}
double gain_before(const Report& report, std::uint64_t offset) {
  for (const auto& one : report.what_if.sites)
    for (const auto& site : report.call_sites)
      if (site.number == one.number && site.frames.at(0).offset == offset) return one.ns;
  return 0;
}

// The gain that the report foretells for rank 1, and what the run without its `late_ns` is shorter by.
void check_gain_of_rank_1(int ranks, const std::function<void(World&, double late_ns)>& run) {
  World with(ranks);
  World without(ranks);
  run(with, 2 * ms);
  run(without, 0);
  CHECK(gain_of(with.report(), 1) == Approx(with.run_ns() - without.run_ns()).epsilon(0.01).margin(0.01 * ms));
}

// A run of 3 ranks, as it would be if rank 1 computed for `computing` before it sends to rank 2, which computes 0.3 ms
// more.
std::vector<Record> chain(double computing, bool through_pair) {
  constexpr std::uint64_t pair = 7;
  auto all = support::records(3);
  for (int rank = 1; rank < 3; ++rank) all[rank].add_communicator(pair, 2, rank - 1, "pair");
  for (Record& record : all) record.capacity = 256;
  double begin = 0;
  for (std::uint64_t call = 0; call < 100; ++call) {
    const double sent = begin + std::max(computing, 0.1e6);
    const double end = sent + 0.3e6;
    all[0].add_call(Collective::allreduce, call, begin + 0.1e6, end + 10e3);
    if (through_pair)
      for (int rank = 1; rank < 3; ++rank)
        all[rank].add_call(Collective::barrier, call, rank == 1 ? begin + computing : begin + 0.1e6, sent, 8, -1, pair);
    for (int rank = 1; rank < 3; ++rank) {
      all[rank].add_call(Collective::allreduce, call, rank == 1 ? sent : end, end + 10e3);
      if (!through_pair && rank == 2) all[rank].add_interval(sent - begin);
    }
    begin = end + 10e3;
  }
  for (Record& record : all) {
    record.add_timed("MPI_Recv", MpiKind::point_to_point, 1,
                     record.header.rank == 2 && !through_pair ? begin - 31e6 : 0);
    record.finalize(begin);
  }
  return all;
}

TEST_CASE("what if: a replay without a rank's delay takes as long as the run without it") {
  for (const bool through_pair : {false, true}) {
    // The median of the ranks computes 0.3 ms between world's calls, 0.4 ms if it does so before the pair's calls, too.
    const Report with = support::analyse(chain(2e6, through_pair));
    const Report without = support::analyse(chain(through_pair ? 0.4e6 : 0.3e6, through_pair));
    REQUIRE(with.what_if.is_known);
    REQUIRE(with.what_if.ranks.size() == 1);
    CHECK(with.what_if.ranks[0].rank == 1);
    CHECK(with.run_ns - with.what_if.ranks[0].ns == Approx(without.run_ns).epsilon(0.01));
    CHECK(with.what_if.all_ns >= with.what_if.ranks[0].ns);
    CHECK(contains(report::to_text(with), "What if (an estimate"));
    CHECK(!contains(report::to_json(with), "\"what_if\": null"));
  }
}

TEST_CASE("what if: work after the last call, and runs that cannot be replayed") {
  auto all = support::records(3);
  for (int rank = 0; rank < 3; ++rank) {
    all[rank].add_call(Collective::barrier, 0, 10e6, 10.1e6);
    all[rank].finalize(rank == 2 ? 500e6 : 20e6);
  }
  Report analysis = support::analyse(all);
  REQUIRE(analysis.what_if.ranks.size() == 1);
  CHECK(analysis.what_if.ranks[0].rank == 2);
  CHECK(analysis.what_if.ranks[0].ns == Approx(480e6));
  all[0].header.ending = static_cast<std::uint32_t>(trace::Ending::running);
  CHECK(!support::analyse(all).what_if.is_known);
  // Balanced: nothing to gain, and no table.
  all = support::records(3);
  for (Record& record : all) {
    record.add_call(Collective::barrier, 0, 10e6, 10.1e6);
    record.finalize(20e6);
  }
  CHECK(support::analyse(all).what_if.all_ns == 0);
  CHECK(!contains(report::to_text(support::analyse(all)), "What if"));
}

TEST_CASE("what if: foretold for one rank is what the run without its lateness is shorter by") {
  SECTION("at every call") {
    check_gain_of_rank_1(3, [](World& world, double late_ns) {
      for (int i = 0; i < 100; ++i) {
        for (int rank = 0; rank < 3; ++rank) world.compute(rank, 3 * ms + (rank == 1 ? late_ns : 0));
        world.call(Collective::allreduce, 1);
      }
    });
  }
  SECTION("a receiver that comes late to a broadcast, and all to a barrier") {
    check_gain_of_rank_1(3, [](World& world, double late_ns) {
      for (int i = 0; i < 100; ++i) {
        for (int rank = 0; rank < 3; ++rank) world.compute(rank, 3 * ms + (rank == 1 ? late_ns : 0));
        world.call(Collective::bcast, 1, 0);
        for (int rank = 0; rank < 3; ++rank) world.compute(rank, 1 * ms);
        world.call(Collective::barrier, 2);
      }
    });
  }
  SECTION("absorbed: the others wait for another one at the next call anyway") {
    check_gain_of_rank_1(3, [](World& world, double late_ns) {
      for (int i = 0; i < 100; ++i) {
        for (int rank = 0; rank < 3; ++rank) world.compute(rank, 1 * ms + (rank == 1 ? late_ns : 0));
        world.call(Collective::reduce, 1, 2);
        for (int rank = 0; rank < 3; ++rank) world.compute(rank, rank == 0 ? 6 * ms : 1 * ms);
        world.call(Collective::barrier, 2);
      }
    });
  }
  SECTION("out of step by as much at every call, which costs nothing") {
    check_gain_of_rank_1(3, [](World& world, double) {
      for (int rank = 0; rank < 3; ++rank) world.compute(rank, rank * ms);
      for (int i = 0; i < 100; ++i) {
        for (int rank = 0; rank < 3; ++rank) world.compute(rank, 3 * ms);
        world.call(Collective::reduce, 1, 2);
      }
    });
  }
}

TEST_CASE("what if: a chain of messages, from whom it is recorded or guessed") {
  for (const bool is_known : {true, false}) {
    check_gain_of_rank_1(4, [is_known](World& world, double late_ns) {
      for (int i = 0; i < 100; ++i) {
        for (int rank = 0; rank < 4; ++rank) world.compute(rank, rank == 1 ? 1 * ms + late_ns : 1 * ms);
        world.message(1, 2, is_known);
        world.compute(2, 0.1 * ms);
        world.message(2, 3, is_known);
        world.call(Collective::allreduce, 1);
      }
    });
  }
  // Rank 0 computes longer still, but nobody waits for its messages: without it nothing is won at the call.
  World world(4);
  for (int i = 0; i < 100; ++i) {
    world.compute(0, 3.1 * ms);
    world.compute(1, 3 * ms);
    world.compute(3, 0.1 * ms);
    world.message(1, 2);
    world.compute(2, 0.3 * ms);
    world.call(Collective::allreduce, 1);
  }
  const Report report = world.report();
  CHECK(gain_of(report, 0) == Approx(0).margin(0.01 * ms));
  CHECK(gain_of(report, 1) == Approx(100 * 0.2 * ms).epsilon(0.01));  // then it waits for rank 0
}

TEST_CASE("what if: a quicker rank waits longer for the message of one that is not") {
  // Rank 2 computes long before a reduction that it leaves at once, but the message of rank 1 comes no earlier.
  World world(3);
  for (int i = 0; i < 50; ++i) {
    for (int rank = 0; rank < 3; ++rank) world.compute(rank, rank == 2 ? 3 * ms : rank == 1 ? 2 * ms : 1 * ms);
    world.call(Collective::reduce, 1, 0);
    world.compute(1, 4 * ms);
    world.message(1, 2);
    world.call(Collective::barrier, 2);
  }
  CHECK(gain_of(world.report(), 2) == Approx(0).margin(0.01 * ms));
}

TEST_CASE("what if: ranks that wait in a ring for each other") {
  World world(3);
  for (int i = 0; i < 50; ++i) {
    for (int rank = 0; rank < 3; ++rank) world.compute(rank, rank == 1 ? 3 * ms : 1 * ms);
    for (int rank = 0; rank < 3; ++rank) world.message((rank + 1) % 3, rank);
    world.call(Collective::allreduce, 1);
  }
  CHECK(gain_of(world.report(), 1) == Approx(50 * 2 * ms).epsilon(0.01));
}

// Rank 1 computes 2 ms longer before the calls of one of two sites, rank 2 1 ms before those of the other.
World two_sites() {
  World world(3);
  for (int i = 0; i < 100; ++i) {
    for (int rank = 0; rank < 3; ++rank) world.compute(rank, rank == 1 ? 3 * ms : 1 * ms);
    world.call(Collective::allreduce, 1);
    for (int rank = 0; rank < 3; ++rank) world.compute(rank, rank == 2 ? 2 * ms : 1 * ms);
    world.call(Collective::barrier, 2);
  }
  return world;
}

TEST_CASE("what if: by call site") {
  World world = two_sites();
  const Report report = world.report();
  CHECK(gain_before(report, 0x10) == Approx(200 * ms).epsilon(0.01));
  CHECK(gain_before(report, 0x20) == Approx(100 * ms).epsilon(0.01));
  CHECK(report.what_if.all_ns == Approx(300 * ms).epsilon(0.01));
  CHECK(report.what_if.all_served.algorithm.empty());  // no message times, so no model of it
  CHECK(contains(report::to_text(report), "all, before MPI_Allreduce"));
  CHECK(contains(report::to_json(report), "\"call_site\": 0"));
}

TEST_CASE("what if: with the best algorithm as well") {
  World world = two_sites();
  for (int rank = 0; rank < 3; ++rank) {
    world[rank].header.cores = 4;
    for (trace::Event& event : world[rank].events) event.exit_ticks += event.call_site == 1 ? Record::ticks(1 * ms) : 0;
  }
  // The next call begins no earlier for it, so that the excess of a call is 1 ms and not the run.
  world[0].header.alpha[0] = {8, 500, 20'000};
  world[0].header.alpha[1] = {65536, 4500, 100'000};
  const Report report = world.report();
  const auto& sites = report.what_if.sites;
  const auto at_allreduce = std::find_if(sites.begin(), sites.end(),
                                         [&](const auto& site) { return site.served.algorithm == "arrival_leader"; });
  REQUIRE(at_allreduce != sites.end());
  CHECK(at_allreduce->served.ns >= at_allreduce->ns + 90 * ms);
  CHECK(contains(report.what_if.all_served.algorithm, "arrival_leader"));
  CHECK(report.what_if.all_served.ns >= report.what_if.all_ns + 90 * ms);
  CHECK(contains(report::to_text(report), "arrival_leader"));
}

// Two ranks that share a resource: alone a rank needs 3 ms of it, beside the other one twice as long. Rank 1 comes to
// it 2 ms late at every other iteration, or, if it shares nothing, that is added to what it computes.
World sharing(bool is_shared) {
  World world(2);
  for (int i = 0; i < 100; ++i) {
    const bool is_late = i % 2 == 1;
    world.compute(0, is_shared && is_late ? 4 * ms : 6 * ms);
    world.compute(1, !is_shared && is_late ? 8 * ms : 6 * ms);
    world.call(Collective::allreduce, 1);
  }
  return world;
}

TEST_CASE("what if: lateness that relieves the others is not sold as a gain") {
  World shared = sharing(true);
  Report report = shared.report();
  CHECK(report.verdict.starts_with("Rank 1 is late"));
  CHECK(gain_of(report, 1) == Approx(0).margin(0.01 * ms));
  CHECK(report.what_if.all_ns == Approx(0).margin(0.01 * ms));
  CHECK(gain_before(report, 0x10) == Approx(0).margin(0.01 * ms));
  REQUIRE(report.what_if.relieved.size() == 1);
  CHECK(report.what_if.relieved[0].late_calls == 50);
  CHECK(report.what_if.relieved[0].cost_share == Approx(0).margin(0.01));
  CHECK(contains(report.verdict, "But the run would hardly be shorter if rank 1 computed no longer than the others"));
  CHECK(report.next.at(0).starts_with("Look at what the ranks share"));
  CHECK(contains(report::to_text(report), "makes these calls only 0 % of it later"));
  CHECK(contains(report::to_json(report), "\"cost_share\": 0"));
  // The same arrivals where the others do not compute shorter meanwhile.
  World own = sharing(false);
  report = own.report();
  CHECK(gain_of(report, 1) == Approx(50 * 2 * ms).epsilon(0.01));
  CHECK(report.what_if.relieved.empty());
}

TEST_CASE("what if: a rank that is late nearly always does not relieve the others") {
  World world(2);
  // At every sixth call something holds up rank 0, too.
  for (int i = 0; i < 120; ++i) {
    world.compute(0, i % 6 == 5 ? 6 * ms : 4 * ms);
    world.compute(1, 6 * ms);
    world.call(Collective::allreduce, 1);
  }
  const Report report = world.report();
  CHECK(report.what_if.relieved.empty());
  CHECK(gain_of(report, 1) == Approx(100 * 2 * ms).epsilon(0.01));
  CHECK(report.next.at(0).starts_with("Give rank 1 less work"));
}

TEST_CASE("what if: where ranks share cores nothing is foretold unless each has its own when it needs it") {
  World world = two_sites();
  const auto wait_for_core = [&](std::uint64_t ns) {
    for (int rank = 0; rank < 3; ++rank) {
      world[rank].header.cores = 2;
      world[rank].header.node_ranks = 3;
      world[rank].header.usage.wall_ns = 1'000'000'000;
      world[rank].header.usage.core_wait_ns = rank == 1 ? ns : 0;
    }
    return world.report();
  };
  Report report = wait_for_core(10'000'000);
  CHECK(report.what_if.is_known);
  CHECK(contains(report.verdict, "If rank 1 computed no longer than the others"));
  report = wait_for_core(100'000'000);
  CHECK(!report.what_if.is_known);
  CHECK(!contains(report.verdict, "If rank 1 computed no longer than the others"));
  CHECK(
      contains(report::to_text(report), "What quicker ranks would bring is not foretold: 3 ranks share 2 cores, and"));
  CHECK(contains(report::to_json(report), "rank 1 was ready to run but had none for 10 % of its time"));
  report = wait_for_core(~std::uint64_t{0});
  CHECK(!report.what_if.is_known);
  CHECK(contains(report.what_if.why_unknown, "is not known"));
}

}  // namespace
}  // namespace papaya
