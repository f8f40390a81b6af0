// What the ranks of a node find out about each other's arrivals, against the same worked out call by call.
#include "profiler/record/node_arrivals.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "tests/catch.hpp"
#include "tests/unit/support/node.hpp"

namespace papaya {
namespace {

using support::ArrivalNode;

constexpr std::uint64_t world = 840;  // rank 0 begins, of however many ranks up to 8

using Groups = std::vector<NodeArrivals::Group>;

Groups groups_of(const ArrivalNode& node, std::uint64_t communicator = world) {
  Groups groups;
  for (int rank = 0; rank < node.size(); ++rank) groups.push_back(node.group(communicator, rank));
  return groups;
}

void publish(ArrivalNode& node, Groups& groups, int rank, std::uint64_t call, std::uint64_t ticks,
             Collective collective = Collective::allreduce, int root = -1) {
  node[rank].arrivals.publish(groups[static_cast<std::size_t>(rank)], call, ticks,
                              static_cast<std::uint64_t>(rank) + 10, collective, 8, root);
}

void leave(ArrivalNode& node, Groups& groups, int rank, std::uint64_t call) {
  node[rank].arrivals.left(groups[static_cast<std::size_t>(rank)], call);
}

void end(ArrivalNode& node, Groups& groups, std::uint64_t calls) {
  for (int rank = 0; rank < node.size(); ++rank) node[rank].arrivals.end(groups[static_cast<std::size_t>(rank)], calls);
}

std::uint64_t calls_of(const ArrivalNode& node) {
  return node.sum([](const trace::NodeCalls& row) { return row.calls; });
}

// Of each rank.
std::vector<std::uint64_t> waits_of(Collective collective, int root, const std::vector<std::uint64_t>& arrivals) {
  const std::uint64_t last = *std::max_element(arrivals.begin(), arrivals.end());
  std::vector<std::uint64_t> waits;
  std::uint64_t last_below = 0;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    last_below = std::max(last_below, arrivals[i]);
    switch (collective) {
      case Collective::bcast:
        waits.push_back(std::max(arrivals[static_cast<std::size_t>(root)], arrivals[i]) - arrivals[i]);
        break;
      case Collective::reduce:
        waits.push_back(static_cast<int>(i) == root ? last - arrivals[i] : 0);
        break;
      case Collective::scan:
        waits.push_back(last_below - arrivals[i]);
        break;
      default:
        waits.push_back(last - arrivals[i]);
    }
  }
  return waits;
}

}  // namespace

TEST_CASE("node arrivals: every call is compared once, by whichever rank") {
  for (const int ranks : {2, 3, 4, 5, 7, 8})
    for (const Collective collective :
         {Collective::allreduce, Collective::bcast, Collective::reduce, Collective::scan}) {
      INFO(ranks << " ranks, " << name_of(collective));
      ArrivalNode node(ranks, 256);
      Groups groups = groups_of(node);
      std::minstd_rand random(static_cast<unsigned>(ranks));
      const std::uint64_t calls = NodeArrivals::block * static_cast<std::uint64_t>(ranks) * 20 + 5;
      std::map<int, std::uint64_t> times_last;
      std::uint64_t imbalance = 0;
      std::uint64_t most = 0;
      std::uint64_t waiting = 0;
      for (std::uint64_t call = 0; call < calls; ++call) {
        const int root = static_cast<int>(random() % static_cast<unsigned>(ranks));
        std::vector<std::uint64_t> ticks;
        for (int rank = 0; rank < ranks; ++rank) {
          ticks.push_back(1000 * call + random() % 900);
          publish(node, groups, rank, call, ticks.back(), collective, root);
        }
        for (int rank = 0; rank < ranks; ++rank) leave(node, groups, rank, call);
        const auto last = std::max_element(ticks.begin(), ticks.end());
        const std::vector<std::uint64_t> waits = waits_of(collective, root, ticks);
        const std::uint64_t own = *std::max_element(waits.begin(), waits.end());
        if (collective == Collective::allreduce) CHECK(own == *last - *std::min_element(ticks.begin(), ticks.end()));
        if (std::count(ticks.begin(), ticks.end(), *last) == 1) ++times_last[static_cast<int>(last - ticks.begin())];
        imbalance += own;
        most = std::max(most, own);
        waiting = std::accumulate(waits.begin(), waits.end(), waiting);
      }
      end(node, groups, calls);
      CHECK(calls_of(node) == calls);
      CHECK(node.given_up() == 0);
      CHECK(node.sum([](const auto& row) { return row.imbalance_ticks; }) == imbalance);
      CHECK(node.sum([](const auto& row) { return row.caused_ticks; }) == waiting);
      for (const auto& [rank, times] : times_last)
        CHECK(node.sum([&](const auto& row) { return row.rank == rank ? row.times_last : 0; }) == times);
      std::uint64_t found = 0;
      node.sum([&](const auto& row) { return found = std::max(found, row.most_ticks); });
      CHECK(found == most);
      // Everybody's own call site, and everybody does its part of the work.
      CHECK(node.sum([](const auto& row) -> std::uint64_t {
        return row.call_site != static_cast<std::uint32_t>(row.rank) + 10;
      }) == 0);
      for (int rank = 0; rank < ranks; ++rank)
        CHECK(std::any_of(node[rank].table.begin(), node[rank].table.end(),
                          [](const auto& row) { return row.calls > 0; }));
    }
}

TEST_CASE("node arrivals: nobody is last by a tie") {
  ArrivalNode node(2, 16, 100);
  Groups groups = groups_of(node);
  for (std::uint64_t call = 0; call < NodeArrivals::block; ++call) {
    publish(node, groups, 0, call, 5000);
    publish(node, groups, 1, call, call == 0 ? 5101 : 5100);
    for (int rank : {0, 1}) leave(node, groups, rank, call);
  }
  CHECK(calls_of(node) == NodeArrivals::block);
  CHECK(node.sum([](const auto& row) { return row.times_last; }) == 1);
}

TEST_CASE("node arrivals: a root that runs ahead comes back to what it could not compare") {
  ArrivalNode node(2, 16);
  Groups groups = groups_of(node);
  const auto call_as = [&](int rank, std::uint64_t call) {
    publish(node, groups, rank, call, 1000 * call + static_cast<std::uint64_t>(rank) * 500, Collective::bcast, 0);
    leave(node, groups, rank, call);
  };
  SECTION("by less than its patience") {
    constexpr std::uint64_t ahead = 56;
    for (std::uint64_t call = 0; call < ahead; ++call) call_as(0, call);
    for (std::uint64_t call = 0; call < ahead; ++call) call_as(1, call);
    for (std::uint64_t call = ahead; call < ahead + 16; ++call)
      for (int rank : {1, 0}) call_as(rank, call);
    CHECK(calls_of(node) == ahead + 16);
    CHECK(node.given_up() == 0);
    // Nobody waits for a root that is there.
    CHECK(node.sum([](const auto& row) { return row.imbalance_ticks; }) == 0);
    CHECK(node.sum([](const auto& row) { return row.caused_ticks; }) == 0);
  }
  SECTION("by more") {
    constexpr std::uint64_t ahead = 2000;
    for (std::uint64_t call = 0; call < ahead; ++call) call_as(0, call);
    for (std::uint64_t call = 0; call < ahead; ++call) call_as(1, call);
    for (std::uint64_t call = ahead; call < ahead + 512; ++call)
      for (int rank : {0, 1}) call_as(rank, call);
    CHECK(calls_of(node) + node.given_up() == ahead + 512);
    CHECK(node.given_up() > 0);
    CHECK(calls_of(node) >= 512);
    // A root's arrival at a later call taken for this one's would be waited for.
    CHECK(node.sum([](const auto& row) { return row.imbalance_ticks; }) == 0);
  }
}

TEST_CASE("node arrivals: calls that are not published are nobody's loss, also the last of a block") {
  for (const std::uint64_t unpublished : {1, 7}) {
    ArrivalNode node(2, 16);
    Groups groups = groups_of(node);
    for (std::uint64_t call = 0; call < 64; ++call)
      for (int rank : {0, 1}) {
        if (call % 8 != unpublished) publish(node, groups, rank, call, 1000 * call + static_cast<std::uint64_t>(rank));
        leave(node, groups, rank, call);
      }
    end(node, groups, 64);
    CHECK(calls_of(node) == 56);
    CHECK(node.given_up() == 0);
  }
}

TEST_CASE("node arrivals: a busy communicator leaves the others their figures") {
  ArrivalNode node(2, 64);
  Groups groups = groups_of(node);
  Groups busy = groups_of(node, 2);
  std::uint64_t others = 0;
  for (std::uint64_t call = 0; call < 100; ++call) {
    for (int rank : {0, 1}) publish(node, groups, rank, call, 1000 * call + static_cast<std::uint64_t>(rank));
    for (int rank : {0, 1}) leave(node, groups, rank, call);
    for (int i = 0; i < 300; ++i, ++others) {
      for (int rank : {0, 1}) publish(node, busy, rank, others, 0);
      for (int rank : {0, 1}) leave(node, busy, rank, others);
    }
  }
  end(node, groups, 100);
  end(node, busy, others);
  CHECK(node.sum([](const auto& row) { return row.communicator == world ? row.calls : 0; }) == 100);
  CHECK(calls_of(node) == 100 + others);
  CHECK(node.sum([](const auto& row) { return row.imbalance_ticks; }) == 100);
}

TEST_CASE("node arrivals: communicators that come and go, and more at once than there are sets") {
  ArrivalNode node(2, 512);
  std::uint64_t calls = 0;
  const auto use = [&](Groups& groups, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t call = from; call < to; ++call, ++calls) {
      for (int rank : {0, 1}) publish(node, groups, rank, call, 10 * static_cast<std::uint64_t>(rank));
      for (int rank : {0, 1}) leave(node, groups, rank, call);
    }
  };
  for (std::uint64_t communicator = 1; communicator <= 300; ++communicator) {
    Groups groups = groups_of(node, communicator);
    use(groups, 0, 11);
    end(node, groups, 11);
  }
  CHECK(calls_of(node) == calls);
  CHECK(node.given_up() == 0);
  std::vector<Groups> all;
  for (std::uint64_t communicator = 1001; communicator <= 1080; ++communicator)
    use(all.emplace_back(groups_of(node, communicator)), 0, 8);
  for (Groups& groups : all) end(node, groups, 8);
  CHECK(node.given_up() == (80 - trace::arrival_sets) * 8);
  CHECK(calls_of(node) + node.given_up() == calls);
  CHECK(node.sum([](const auto& row) { return row.imbalance_ticks; }) == 10 * calls_of(node));
}

TEST_CASE("node arrivals: a call that failed has no arrival") {
  ArrivalNode node(2, 16);
  Groups groups = groups_of(node);
  for (std::uint64_t call = 0; call < 8; ++call) {
    publish(node, groups, 1, call, 1);
    node[1].arrivals.take_back(groups[1], call);
    publish(node, groups, 0, call, 5, Collective::bcast, 0);
    if (call == 7) {
      leave(node, groups, 0, call);
      CHECK(calls_of(node) == 7);
    }
    publish(node, groups, 1, call, 2, Collective::bcast, 0);
    leave(node, groups, 1, call);
  }
  end(node, groups, 8);
  CHECK(calls_of(node) == 8);
  CHECK(node.sum([](const auto& row) { return row.imbalance_ticks; }) == 8 * (5 - 2));
}

TEST_CASE("node arrivals: ranks that disagree about the collective are not compared") {
  ArrivalNode node(2, 16);
  Groups groups = groups_of(node);
  for (std::uint64_t call = 0; call < 8; ++call)
    for (int rank : {0, 1})
      publish(node, groups, rank, call, 1, call == 3 && rank == 1 ? Collective::barrier : Collective::allreduce);
  leave(node, groups, 0, 7);
  CHECK(calls_of(node) == 7);
  CHECK(node.given_up() == 1);
}

TEST_CASE("node arrivals: what does not fit the table goes to a row for all communicators") {
  ArrivalNode node(2, 8);
  for (std::uint64_t communicator = 1; communicator <= 100; ++communicator) {
    Groups groups = groups_of(node, communicator);
    for (std::uint64_t call = 0; call < 8; ++call) {
      for (int rank : {0, 1}) publish(node, groups, rank, call, static_cast<std::uint64_t>(rank));
      for (int rank : {0, 1}) leave(node, groups, rank, call);
    }
    end(node, groups, 8);
  }
  CHECK(calls_of(node) == 800);
  CHECK(node.given_up() == 0);
  CHECK(node.sum([](const auto& row) { return row.communicator == 0 ? row.calls : 0; }) == 800 - 2 * 6 * 8);
  // Or nowhere.
  for (int i = 0; i < 20; ++i) {
    Groups groups = groups_of(node);
    for (std::uint64_t call = 0; call < 8; ++call) {
      for (int rank : {0, 1})
        node[rank].arrivals.publish(groups[static_cast<std::size_t>(rank)], call, static_cast<std::uint64_t>(rank),
                                    100 + static_cast<std::uint64_t>(i), Collective::allreduce, 8, -1);
      for (int rank : {0, 1}) leave(node, groups, rank, call);
    }
    end(node, groups, 8);
  }
  CHECK(calls_of(node) + node.given_up() == 960);
  CHECK(node.given_up() > 0);
}

}  // namespace papaya
