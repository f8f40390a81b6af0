// With whom delays begin that go through collectives of several communicators.
#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

using report::Report;
using support::rank_of;
using support::Record;

// A job whose ranks compute and make calls on communicators, each when its last rank has come.
struct Rounds {
  explicit Rounds(int ranks) : all(support::records(ranks)), now_ns(static_cast<std::size_t>(ranks), 1e3) {
    for (Record& record : all) {
      record.capacity = 512;
      record.add_timed("MPI_Send", MpiKind::point_to_point, 0, 0);
    }
  }
  void compute(int rank, double ns) { now_ns[static_cast<std::size_t>(rank)] += ns; }
  void call(std::uint64_t communicator, const std::vector<int>& ranks) {
    double last_ns = 0;
    for (const int rank : ranks) last_ns = std::max(last_ns, now_ns[static_cast<std::size_t>(rank)]);
    const std::uint64_t number = calls[communicator]++;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const auto rank = static_cast<std::size_t>(ranks[i]);
      if (number == 0)
        all[rank].add_communicator(communicator, static_cast<int>(ranks.size()), static_cast<int>(i), "part");
      all[rank].add_call(Collective::allreduce, number, now_ns[rank], last_ns + 1e3, 8, -1, communicator);
      // They leave one after the other.
      now_ns[rank] = last_ns + 1e3 + 500 * static_cast<double>(i);
    }
  }
  Report analyse() {
    for (Record& record : all) record.finalize(*std::max_element(now_ns.begin(), now_ns.end()) + 1e3);
    Report analysis = support::analyse(all);
    // All waiting began somewhere, or that is not known.
    double sum_ns = 0;
    for (const report::RankFigures& rank : analysis.late_ranks) sum_ns += rank.began_ns + rank.unknown_origin_ns;
    CHECK(sum_ns == Approx(analysis.waiting_ns));
    return analysis;
  }

  std::vector<Record> all;
  std::vector<double> now_ns;
  std::map<std::uint64_t, std::uint64_t> calls;
};

double unknown_ns(const Report& analysis) {
  double sum = 0;
  for (const report::RankFigures& rank : analysis.late_ranks) sum += rank.unknown_origin_ns;
  return sum;
}

TEST_CASE("origins: a delay goes from a row of a grid to all its columns") {
  Rounds rounds(9);
  for (int round = 0; round < 100; ++round) {
    for (int rank = 0; rank < 9; ++rank) rounds.compute(rank, rank == 4 ? 2e6 : 0.1e6);
    // Several calls on the rows between two on the columns.
    for (int again = 0; again < 3; ++again)
      for (int row = 0; row < 3; ++row)
        rounds.call(70 + static_cast<std::uint64_t>(row), {3 * row, 3 * row + 1, 3 * row + 2});
    for (int column = 0; column < 3; ++column)
      rounds.call(80 + static_cast<std::uint64_t>(column), {column, column + 3, column + 6});
  }
  const Report analysis = rounds.analyse();
  CHECK(rank_of(analysis, 4).began_ns > 0.98 * analysis.waiting_ns);
  CHECK(rank_of(analysis, 3).passed_on_from == 4);
  CHECK(rank_of(analysis, 5).passed_on_from == 4);
  CHECK(rank_of(analysis, 5).passed_on_ns == Approx(rank_of(analysis, 5).caused_ns).epsilon(0.02));
  CHECK(unknown_ns(analysis) < 0.01 * analysis.waiting_ns);
}

TEST_CASE("origins: a delay goes through several communicators") {
  Rounds rounds(5);
  for (int round = 0; round < 100; ++round) {
    rounds.compute(0, 2e6);
    for (int rank = 0; rank < 4; ++rank) rounds.call(70 + static_cast<std::uint64_t>(rank), {rank, rank + 1});
    // All begin the next round at once.
    rounds.now_ns.assign(5, *std::max_element(rounds.now_ns.begin(), rounds.now_ns.end()));
  }
  const Report analysis = rounds.analyse();
  CHECK(rank_of(analysis, 0).began_ns > 0.95 * analysis.waiting_ns);
  CHECK(rank_of(analysis, 3).passed_on_from == 0);
}

TEST_CASE("origins: a delay of which one half came through another communicator has two beginnings") {
  Rounds rounds(4);
  for (int round = 0; round < 100; ++round) {
    rounds.compute(1, 4e6);
    rounds.compute(2, 8e6);
    rounds.call(70, {0, 1});
    rounds.call(71, {2, 3});
    rounds.call(72, {1, 2, 3});
  }
  const Report analysis = rounds.analyse();
  // Rank 0 waits 4 ms for the one and, but for the first time, 4 ms for the other.
  CHECK(rank_of(analysis, 1).began_ns == Approx(0.4e9).epsilon(0.02));
  CHECK(rank_of(analysis, 2).began_ns == Approx(1.6e9).epsilon(0.02));
  CHECK(unknown_ns(analysis) < 0.01 * analysis.waiting_ns);
}

TEST_CASE("origins: a rank that passes on the delays of many passes on all of them, most from the one that is latest") {
  constexpr int others = 50;
  Rounds rounds(others + 2);
  for (int k = 1; k <= others; ++k) {
    rounds.compute(k, k == 7 ? 20e6 : 2e6);
    rounds.call(100 + static_cast<std::uint64_t>(k), {0, k});
    rounds.call(99, {0, others + 1});
    rounds.now_ns.assign(others + 2, *std::max_element(rounds.now_ns.begin(), rounds.now_ns.end()));
  }
  const Report analysis = rounds.analyse();
  CHECK(rank_of(analysis, 0).passed_on_from == 7);
  CHECK(rank_of(analysis, 0).passed_on_ns == Approx(118e6).epsilon(0.05));
  CHECK(rank_of(analysis, 7).began_ns == Approx(40e6).epsilon(0.05));
  CHECK(rank_of(analysis, others).began_ns == Approx(4e6).epsilon(0.05));
}

TEST_CASE("origins: waiting that all ranks of a communicator have had does not explain why one of them is late") {
  Rounds rounds(4);
  for (int round = 0; round < 100; ++round) {
    rounds.compute(0, round == 0 ? 2e6 : 4e6);
    rounds.call(70, {0, 1, 2, 3});
    rounds.all[1].add_interval(0);
    // Rank 1 is in MPI meanwhile.
    rounds.compute(1, 2e6);
    rounds.call(71, {1, 2, 3});
    rounds.all[1].add_interval(2e6);
  }
  rounds.all[1].add_timed("MPI_Recv", MpiKind::point_to_point, 100, 200e6);
  const Report analysis = rounds.analyse();
  CHECK(rank_of(analysis, 1).unknown_origin_ns > 0.3 * analysis.waiting_ns);
}

// One call of all ranks, from when they are there until they leave, some of them late for what the others did before.
struct Rooted : Rounds {
  using Rounds::Rounds;
  void call(Collective collective, int root, const std::vector<double>& leave_ns) {
    const std::uint64_t number = calls[support::world_id]++;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      all[rank].add_call(collective, number, now_ns[rank], leave_ns[rank], 8, root);
      all[rank].add_interval(0);
      now_ns[rank] = leave_ns[rank];
    }
  }
  double latest() const { return *std::max_element(now_ns.begin(), now_ns.end()); }
  // Those that need nobody leave at once.
  void gather() {
    std::vector<double> leave(now_ns);
    for (double& ns : leave) ns += 1e3;
    leave[0] = latest() + 2e3;
    call(Collective::gather, 0, leave);
  }
  void barrier() { call(Collective::barrier, -1, std::vector<double>(all.size(), latest() + 1e3)); }
};

TEST_CASE("origins: a root that waited in a gather passes its delay on to the barrier after it") {
  Rooted rounds(4);
  for (int round = 0; round < 100; ++round) {
    rounds.compute(2, 2e6);
    rounds.gather();
    rounds.barrier();
  }
  const Report analysis = rounds.analyse();
  // The root waits in the gather, ranks 1 and 3 in the barrier.
  CHECK(analysis.waiting_ns == Approx(600e6).epsilon(0.02));
  CHECK(rank_of(analysis, 2).began_ns > 0.98 * analysis.waiting_ns);
  CHECK(rank_of(analysis, 0).passed_on_from == 2);
}

TEST_CASE("origins: senders of large messages that came late out of a gather were kept by its root") {
  Rooted rounds(4);
  for (int round = 0; round < 100; ++round) {
    rounds.compute(0, 2e6);
    std::vector<double> leave(rounds.now_ns);
    leave[0] = leave[1] = leave[2] = rounds.now_ns[0] + 5e3;
    leave[1] += 1e3;  // is the last at the barrier
    leave[3] += 1e3;
    rounds.call(Collective::gather, 0, leave);
    rounds.barrier();
  }
  const Report analysis = rounds.analyse();
  CHECK(rank_of(analysis, 1).caused_ns > 0.9 * analysis.waiting_ns);
  CHECK(rank_of(analysis, 0).began_ns > 0.98 * analysis.waiting_ns);
}

TEST_CASE("origins: who waited for the root of a broadcast goes on with it") {
  Rooted rounds(4);
  for (int round = 0; round < 100; ++round) {
    rounds.compute(0, 2e6);
    rounds.call(Collective::bcast, 0, std::vector<double>(4, rounds.now_ns[0] + 1e3));
    rounds.compute(3, 1e6);
    rounds.barrier();
  }
  const Report analysis = rounds.analyse();
  CHECK(rank_of(analysis, 0).began_ns == Approx(600e6).epsilon(0.02));
  CHECK(rank_of(analysis, 3).began_ns == Approx(300e6).epsilon(0.02));
}

TEST_CASE("origins: what came through a gather and what through another communicator are parts of one delay") {
  Rooted rounds(6);
  for (int round = 0; round < 100; ++round) {
    rounds.compute(2, 1e6);
    rounds.gather();
    rounds.compute(0, 0.5e6);
    rounds.compute(3, 2e6);
    rounds.Rounds::call(70, {3, 0});
    for (const std::size_t rank : {0u, 3u}) rounds.all[rank].add_interval(0);
    rounds.barrier();
  }
  const Report analysis = rounds.analyse();
  // Of the root's 2 ms at the barrier, which ranks 1, 4 and 5 wait for: 1 of rank 2's, 0.5 its own, 0.5 of rank 3's.
  CHECK(rank_of(analysis, 0).passed_on_ns > 0.3 * analysis.waiting_ns);
  for (const int rank : {0, 2, 3}) CHECK(rank_of(analysis, rank).began_ns > 0.1 * analysis.waiting_ns);
}

TEST_CASE("origins: who was late before a broadcast is not blamed for what others have waited for in messages since") {
  Rooted rounds(4);
  for (int round = 0; round < 100; ++round) {
    rounds.compute(1, 3e6);
    std::vector<double> leave(rounds.now_ns);
    for (double& ns : leave) ns += 1e3;
    rounds.call(Collective::bcast, 0, leave);
    // All wait for a message of rank 1; then rank 3 is in MPI for longer, and for whom is not known.
    rounds.now_ns.assign(4, rounds.latest());
    rounds.compute(3, 2e6);
    std::vector<double> end(4, rounds.latest() + 1e3);
    const std::uint64_t number = rounds.calls[support::world_id]++;
    for (std::size_t rank = 0; rank < 4; ++rank) {
      rounds.all[rank].add_call(Collective::allreduce, number, rounds.now_ns[rank], end[rank]);
      rounds.all[rank].add_interval((rank == 1 ? 0 : 3e6) + (rank == 3 ? 2e6 : 0));
    }
    rounds.now_ns = end;
  }
  for (int rank = 0; rank < 4; ++rank)
    if (rank != 1)
      rounds.all[static_cast<std::size_t>(rank)].add_timed("MPI_Recv", MpiKind::point_to_point, 100, 300e6);
  const Report analysis = rounds.analyse();
  CHECK(rank_of(analysis, 1).began_ns < 0.05 * analysis.waiting_ns);
  CHECK(rank_of(analysis, 3).unknown_origin_ns > 0.9 * analysis.waiting_ns);
}

}  // namespace
}  // namespace papaya
