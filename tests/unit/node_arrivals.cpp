// What the ranks of a node find out about each other's arrivals, against the same worked out call by call.
#include "profiler/node_arrivals.hpp"

#include <algorithm>
#include <map>
#include <random>

#include "tests/catch.hpp"
#include "tests/unit/support/node.hpp"

namespace papaya {
namespace {

using support::ArrivalNode;

constexpr std::uint64_t world = 1;

void publish(ArrivalNode& node, int rank, std::uint64_t call, std::uint64_t ticks, Collective collective = Collective::allreduce,
             int root = -1, std::uint64_t communicator = world) {
  node[rank].arrivals.publish(communicator, call, ticks, static_cast<std::uint64_t>(rank) + 10, collective, 8, root);
}

std::uint64_t calls_of(const ArrivalNode& node) {
  return node.sum([](const trace::NodeCalls& row) { return row.calls; });
}

std::uint64_t waiting_of(Collective collective, int root, const std::vector<std::uint64_t>& arrivals) {
  const std::uint64_t last = *std::max_element(arrivals.begin(), arrivals.end());
  std::uint64_t sum = 0;
  std::uint64_t last_below = 0;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    last_below = std::max(last_below, arrivals[i]);
    switch (collective) {
      case Collective::bcast:
        sum += std::max(arrivals[static_cast<std::size_t>(root)], arrivals[i]) - arrivals[i];
        break;
      case Collective::reduce:
        sum += static_cast<int>(i) == root ? last - arrivals[i] : 0;
        break;
      case Collective::scan:
        sum += last_below - arrivals[i];
        break;
      default:
        sum += last - arrivals[i];
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("node arrivals: every call is compared once, by whichever rank") {
  for (const int ranks : {2, 3, 4, 5, 7, 8})
    for (const Collective collective : {Collective::allreduce, Collective::bcast, Collective::reduce, Collective::scan}) {
      INFO(ranks << " ranks, " << name_of(collective));
      ArrivalNode node(ranks, 256);
      std::vector<NodeArrivals::Group> groups;
      for (int rank = 0; rank < ranks; ++rank) groups.push_back(node.group(world, rank));
      std::minstd_rand random(static_cast<unsigned>(ranks));
      const std::uint64_t calls = NodeArrivals::block * static_cast<std::uint64_t>(ranks) * 20;
      std::map<int, std::uint64_t> times_last;
      std::uint64_t imbalance = 0;
      std::uint64_t most = 0;
      std::uint64_t waiting = 0;
      for (std::uint64_t call = 0; call < calls; ++call) {
        const int root = static_cast<int>(random() % static_cast<unsigned>(ranks));
        std::vector<std::uint64_t> ticks;
        for (int rank = 0; rank < ranks; ++rank) {
          ticks.push_back(1000 * call + random() % 900);
          publish(node, rank, call, ticks.back(), collective, root);
        }
        for (int rank = 0; rank < ranks; ++rank) node[rank].arrivals.left(groups[static_cast<std::size_t>(rank)], call);
        const auto last = std::max_element(ticks.begin(), ticks.end());
        const std::uint64_t own = *last - *std::min_element(ticks.begin(), ticks.end());
        if (std::count(ticks.begin(), ticks.end(), *last) == 1) ++times_last[static_cast<int>(last - ticks.begin())];
        imbalance += own;
        most = std::max(most, own);
        waiting += waiting_of(collective, root, ticks);
      }
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
      CHECK(node.sum([](const auto& row) -> std::uint64_t { return row.call_site != static_cast<std::uint32_t>(row.rank) + 10; }) == 0);
      for (int rank = 0; rank < ranks; ++rank)
        CHECK(std::any_of(node[rank].table.begin(), node[rank].table.end(), [](const auto& row) { return row.calls > 0; }));
    }
}

TEST_CASE("node arrivals: nobody is last by a tie") {
  ArrivalNode node(2, 16, 100);
  NodeArrivals::Group groups[] = {node.group(world, 0), node.group(world, 1)};
  for (std::uint64_t call = 0; call < NodeArrivals::block; ++call) {
    publish(node, 0, call, 5000);
    publish(node, 1, call, call == 0 ? 5101 : 5100);
    for (int rank : {0, 1}) node[rank].arrivals.left(groups[rank], call);
  }
  CHECK(calls_of(node) == NodeArrivals::block);
  CHECK(node.sum([](const auto& row) { return row.times_last; }) == 1);
}

TEST_CASE("node arrivals: a root that runs ahead comes back to what it could not compare") {
  ArrivalNode node(2, 16);
  NodeArrivals::Group groups[] = {node.group(world, 0), node.group(world, 1)};
  const auto call_as = [&](int rank, std::uint64_t call) {
    publish(node, rank, call, 1000 * call + static_cast<std::uint64_t>(rank) * 500, Collective::bcast, 0);
    node[rank].arrivals.left(groups[rank], call);
  };
  SECTION("by less than its patience") {
    constexpr std::uint64_t ahead = 200;
    for (std::uint64_t call = 0; call < ahead; ++call) call_as(0, call);
    for (std::uint64_t call = 0; call < ahead; ++call) call_as(1, call);
    for (std::uint64_t call = ahead; call < ahead + 16; ++call)
      for (int rank : {1, 0}) call_as(rank, call);
    CHECK(calls_of(node) == ahead + 16);
    CHECK(node.given_up() == 0);
    CHECK(node.sum([](const auto& row) { return row.imbalance_ticks; }) == 500 * (ahead + 16));
    CHECK(node.sum([](const auto& row) { return row.caused_ticks; }) == 0);  // nobody waits for a root that is there
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
    CHECK(node.sum([](const auto& row) { return row.imbalance_ticks; }) == 500 * calls_of(node));  // nothing wrong among them
  }
}

TEST_CASE("node arrivals: calls that are not published are nobody's loss") {
  ArrivalNode node(2, 16);
  NodeArrivals::Group groups[] = {node.group(world, 0), node.group(world, 1)};
  for (std::uint64_t call = 0; call < 64; ++call)
    for (int rank : {0, 1}) {
      if (call % 4 != 1) publish(node, rank, call, 1000 * call + static_cast<std::uint64_t>(rank));
      node[rank].arrivals.left(groups[rank], call);
    }
  CHECK(calls_of(node) == 48);
  CHECK(node.given_up() == 0);
}

TEST_CASE("node arrivals: communicators that share slots spoil no figure") {
  // Slots follow from the number of the communicator: find one that shares all of them.
  std::uint64_t other = world + 1;
  while (trace::arrival_slot(other, 0) != trace::arrival_slot(world, 0)) ++other;
  ArrivalNode node(2, 16);
  NodeArrivals::Group groups[] = {node.group(world, 0), node.group(world, 1)};
  NodeArrivals::Group others[] = {node.group(other, 0), node.group(other, 1)};
  for (std::uint64_t call = 0; call < 64; ++call) {
    for (int rank : {0, 1}) publish(node, rank, call, 1000 * call + static_cast<std::uint64_t>(rank));
    for (int rank : {0, 1}) node[rank].arrivals.left(groups[rank], call);
    if (call % 8 != 3) continue;
    for (int rank : {0, 1}) publish(node, rank, call, 1000 * call + 7 * static_cast<std::uint64_t>(rank), Collective::barrier, -1, other);
    for (int rank : {0, 1}) node[rank].arrivals.left(others[rank], call);
  }
  // The 8 that were overwritten are left out, the others are right.
  CHECK(calls_of(node) == 56);
  CHECK(node.sum([](const auto& row) { return row.imbalance_ticks; }) == 56);
}

TEST_CASE("node arrivals: ranks that disagree about the collective are not compared") {
  ArrivalNode node(2, 16);
  NodeArrivals::Group groups[] = {node.group(world, 0), node.group(world, 1)};
  for (std::uint64_t call = 0; call < 8; ++call)
    for (int rank : {0, 1})
      publish(node, rank, call, 1, call == 3 && rank == 1 ? Collective::barrier : Collective::allreduce);
  node[0].arrivals.left(groups[0], 7);
  CHECK(calls_of(node) == 7);
  CHECK(node.given_up() == 1);
}

TEST_CASE("node arrivals: a full table is counted") {
  ArrivalNode node(2, 8);
  for (std::uint64_t communicator = 1; communicator <= 100; ++communicator) {
    NodeArrivals::Group groups[] = {node.group(communicator, 0), node.group(communicator, 1)};
    for (std::uint64_t call = 0; call < 8; ++call) {
      for (int rank : {0, 1}) publish(node, rank, call, static_cast<std::uint64_t>(rank), Collective::allreduce, -1, communicator);
      for (int rank : {0, 1}) node[rank].arrivals.left(groups[rank], call);
    }
  }
  CHECK(calls_of(node) == 64);
  CHECK(node.given_up() == 800 - 64);
}

TEST_CASE("node arrivals: a rank without a board is looked for, and then left alone") {
  ArrivalNode node(2, 16);
  node.absent = 1;
  NodeArrivals::Group groups[] = {node.group(world, 0), node.group(world, 1)};
  const auto calls = [&](std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t call = from; call < to; ++call) {
      for (int rank : {0, 1}) publish(node, rank, call, 1000 * call + static_cast<std::uint64_t>(rank));
      for (int rank : {0, 1}) node[rank].arrivals.left(groups[rank], call);
    }
  };
  SECTION("it comes") {
    calls(0, 64);
    node.absent = -1;
    calls(64, 128);
    CHECK(calls_of(node) == 128);
  }
  SECTION("it does not") {
    calls(0, 8 * NodeArrivals::most_searches + 64);
    node.absent = -1;
    const std::uint64_t before = calls_of(node);
    calls(8 * NodeArrivals::most_searches + 64, 8 * NodeArrivals::most_searches + 128);
    CHECK(calls_of(node) == before + 32);  // rank 1's half: it found rank 0's
    CHECK(groups[0].ranks.empty());
  }
}

}  // namespace papaya
