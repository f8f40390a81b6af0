// The ring in the order of arrivals: what goes over which link, by simulation; what is learnt of arrivals.
#include "algorithms/patterns/sorted_ring.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/catch.hpp"

namespace papaya {
namespace {

using namespace patterns;

// Everybody passes on and takes in the order of its links, each pass as soon as what it needs has come.
// Returns whether in the end every block has been at every rank with each operand in it once, and nothing was
// passed on in vain.
bool ends_well(int ranks, int blocks, int steps) {
  const auto p = static_cast<std::size_t>(ranks);
  std::vector<std::vector<Pass>> links;
  for (int position = 0; position < ranks; ++position) links.push_back(link_passes(ranks, blocks, steps, position));
  // Of each position and block: which operands are in what it has, as bits.
  std::vector<std::vector<std::uint32_t>> has(p, std::vector<std::uint32_t>(static_cast<std::size_t>(blocks)));
  for (std::size_t i = 0; i < p; ++i) std::fill(has[i].begin(), has[i].end(), std::uint32_t{1} << i);
  const std::uint32_t all = (std::uint32_t{1} << ranks) - 1;
  std::vector<std::size_t> done(p, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = 0; i < p; ++i) {
      const std::size_t before = (i + p - 1) % p;
      for (; done[i] < links[i].size(); ++done[i], moved = true) {
        const Pass pass = links[i][done[i]];
        if (pass.brought_by >= 0 && done[before] <= static_cast<std::size_t>(pass.brought_by)) break;
        const auto block = static_cast<std::size_t>(pass.block);
        const std::uint32_t sent = has[i][block];
        std::uint32_t& to = has[(i + 1) % p][block];
        if (pass.is_result ? sent != all || to == all : (sent & to) != 0) return false;
        to |= sent;
      }
    }
  }
  for (std::size_t i = 0; i < p; ++i)
    if (done[i] != links[i].size() || std::count(has[i].begin(), has[i].end(), all) != blocks) return false;
  return true;
}

std::vector<int> in_rank_order(int ranks) {
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// What the ranks measure in a call if the k-th position enters it at `arrivals_ns[k]` and each hop takes
// `hop_ns`.
std::vector<std::uint32_t> waits(const std::vector<int>& order, const std::vector<std::uint32_t>& arrivals_ns,
                                 std::uint32_t hop_ns) {
  std::uint32_t now = 0;
  for (std::size_t i = 0; i < order.size(); ++i)
    now = std::max(i == 0 ? 0 : now + hop_ns, arrivals_ns[static_cast<std::size_t>(order[i])]);
  std::vector<std::uint32_t> waited(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    waited[static_cast<std::size_t>(order[i])] =
        std::max(1u, now + static_cast<std::uint32_t>((i + 1) % order.size()) * hop_ns -
                         arrivals_ns[static_cast<std::size_t>(order[i])]);
  return waited;
}

}  // namespace

TEST_CASE("sorted ring: every block is reduced by each rank once and comes to all, whatever the pre-steps") {
  for (int ranks = 2; ranks <= 20; ++ranks) {
    CHECK(ends_well(ranks, 1, 0));
    for (int steps = 0; steps < ranks; ++steps) {
      INFO(ranks << " ranks, " << steps << " pre-steps");
      CHECK(ends_well(ranks, ranks, steps));
    }
  }
}

TEST_CASE("sorted ring: pre-steps take work from the link behind the last rank") {
  for (int ranks = 2; ranks <= 20; ++ranks)
    for (int steps = 0; steps < ranks - 1; ++steps)
      CHECK(link_passes(ranks, ranks, steps, ranks - 1).size() == static_cast<std::size_t>(2 * ranks - 2 - steps));
  // Without any it is the ring: in step t position i passes on block i - t.
  const std::vector<Pass> ring = link_passes(5, 5, 0, 3);
  for (int t = 0; t < 8; ++t) {
    CHECK(ring[static_cast<std::size_t>(t)].block == (3 - t + 10) % 5);
    CHECK(ring[static_cast<std::size_t>(t)].is_result == (t >= 4));
  }
}

TEST_CASE("sorted ring: the order follows the arrivals, without a clock") {
  constexpr int ranks = 8;
  constexpr std::uint32_t hop = 70'000;
  std::vector<int> order = in_rank_order(ranks);
  Arrivals arrivals{.hop_ns = 0, .late_ns = std::vector<std::uint32_t>(ranks)};
  const auto call = [&](const std::vector<std::uint32_t>& at) {
    learn_arrivals(arrivals, order, waits(order, at, hop));
    return sort_by_arrival(order, arrivals);
  };
  // All at once: the paths to and from the last position are no reason to change positions.
  const std::vector<std::uint32_t> together(ranks, 5);
  for (int i = 0; i < 5; ++i) CHECK_FALSE(call(together));
  CHECK(pre_steps(order, arrivals, 1) == 0);
  // One late by three hops.
  std::vector<std::uint32_t> late = together;
  late[2] += 3 * hop;
  for (int i = 0; i < 20; ++i) call(late);
  CHECK(order == std::vector<int>{0, 1, 3, 4, 5, 6, 7, 2});
  CHECK(pre_steps(order, arrivals, 1) >= 2);
  CHECK(pre_steps(order, arrivals, 100) == 0);
  // Late for so long that the way of a message is not seen: still the same.
  for (int i = 0; i < 300; ++i) CHECK_FALSE(call(late));
  // Another one, much later than that.
  std::vector<std::uint32_t> other = together;
  other[0] += 1000 * hop;
  for (int i = 0; i < 8; ++i) call(other);
  CHECK(order.back() == 0);
  CHECK(pre_steps(order, arrivals, 1) == ranks - 1);
  // Each later than the one before, and against the order of ranks.
  std::vector<std::uint32_t> falling(ranks);
  for (int r = 0; r < ranks; ++r)
    falling[static_cast<std::size_t>(r)] = static_cast<std::uint32_t>(ranks - r) * 4 * hop;
  for (int i = 0; i < 60; ++i) call(falling);
  CHECK(order == std::vector<int>{7, 6, 5, 4, 3, 2, 1, 0});
}

TEST_CASE("sorted ring: nothing is learnt before all have waited once, and times may be as long as a word is") {
  Arrivals arrivals{.hop_ns = 0, .late_ns = {0, 0, 0}};
  std::vector<int> order = in_rank_order(3);
  learn_arrivals(arrivals, order, std::vector<std::uint32_t>{5000, 0, 5000});
  CHECK(arrivals.hop_ns == 0);
  CHECK(pre_steps(order, arrivals, 1) == 0);
  CHECK_FALSE(sort_by_arrival(order, arrivals));
  for (int i = 0; i < 100; ++i) {
    learn_arrivals(arrivals, order, std::vector<std::uint32_t>{1, 0xffffffffu, 0xffffffffu});
    sort_by_arrival(order, arrivals);
  }
  CHECK(arrivals.late_ns[0] > 0xffff0000u);
  CHECK(arrivals.late_ns[1] < 0x10000u);
  CHECK(order.back() == 0);
}

}  // namespace papaya
