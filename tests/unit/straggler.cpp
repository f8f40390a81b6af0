// The schedule after a late rank's arrival, by simulation in rounds; who is found to be late.
#include "algorithms/patterns/straggler.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "tests/catch.hpp"

namespace papaya {
namespace {

using namespace patterns;

// How many rounds it takes until all have all blocks; -1 if a rank sends or receives two blocks in a round, sends what
// it has not, or gets a block twice.
int rounds_of(int ranks) {
  const StragglerSchedule schedule(ranks);
  const int blocks = ranks - 1;
  std::vector<std::vector<BlockSend>> sends;
  int rounds = blocks;
  for (int rank = 0; rank < ranks; ++rank) {
    sends.push_back(schedule.sends_of(rank));
    for (const BlockSend& send : sends.back()) rounds = std::max(rounds, send.round + 1);
  }
  const auto n = static_cast<std::size_t>(ranks);
  std::vector<std::vector<bool>> has(n, std::vector<bool>(static_cast<std::size_t>(blocks)));
  std::vector<std::size_t> done(n);
  for (int round = 0; round < rounds; ++round) {
    std::vector<int> sending(n);
    std::vector<int> receiving(n);
    std::vector<BlockSend> come;
    const auto go = [&](int from, int to, int block) {
      ++sending[static_cast<std::size_t>(from)];
      ++receiving[static_cast<std::size_t>(to)];
      come.push_back({round, to, block});
    };
    if (round < blocks) {
      go(0, owner_of_block(round), round);
      if (round == blocks - 1) come.push_back({round, 0, round});
    }
    for (int rank = 0; rank < ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      for (; done[at] < sends[at].size() && sends[at][done[at]].round == round; ++done[at]) {
        const BlockSend& send = sends[at][done[at]];
        if (!has[at][static_cast<std::size_t>(send.block)]) return -1;
        go(rank, send.to, send.block);
      }
    }
    for (const BlockSend& one : come) {
      auto is_there = has[static_cast<std::size_t>(one.to)][static_cast<std::size_t>(one.block)];
      if (is_there) return -1;
      is_there = true;
    }
    if (*std::max_element(sending.begin(), sending.end()) > 1) return -1;
    if (*std::max_element(receiving.begin(), receiving.end()) > 1) return -1;
  }
  for (std::size_t rank = 0; rank < n; ++rank)
    if (done[rank] != sends[rank].size() || std::count(has[rank].begin(), has[rank].end(), false) != 0) return -1;
  return rounds;
}

}  // namespace

TEST_CASE("straggler: every block comes to all in n-2 + log2 n rounds, one send and one receive each") {
  for (int ranks = 2; ranks <= 130; ++ranks) {
    INFO(ranks << " ranks");
    const int least = ranks - 2 + std::bit_width(static_cast<unsigned>(ranks - 1));
    const int rounds = rounds_of(ranks);
    const bool is_power = std::has_single_bit(static_cast<unsigned>(ranks));
    CHECK(rounds >= least);
    CHECK(rounds <= (is_power ? least : least + std::max(2, least / 7)));
  }
}

TEST_CASE("straggler: who comes last three times in a row") {
  LastArrival arrivals(4);
  // Rank 1 looks; the ranks of a call in the order of their arrival, -1 where it begins to look.
  const auto call = [&](std::vector<int> order, int before) {
    std::vector<bool> here(4);
    arrivals.begin_call();
    for (const int rank : order) {
      if (rank >= 0) here[static_cast<std::size_t>(rank)] = true;
      if (rank < 0 || here[1])
        arrivals.look(1, [&](int one) { return static_cast<bool>(here[static_cast<std::size_t>(one)]); });
    }
    return arrivals.end_call(before);
  };
  CHECK(call({0, 1, 3, 2}, 3) == 3);
  CHECK(call({1, 3, 0, 2}, 3) == 3);
  CHECK(call({3, 0, 1, 2}, 3) == 2);
  CHECK(call({3, 2, 0, 1}, 2) == 2);  // itself
  CHECK(call({2, 3, 0, 1}, 2) == 2);
  CHECK(call({0, 2, 3, 1}, 2) == 1);
  arrivals.forget();
  CHECK(call({0, 2, 3, 1}, 2) == 2);
}

}  // namespace papaya
