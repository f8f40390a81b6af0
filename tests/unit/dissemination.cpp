// The n-way dissemination algorithm's peers, 5-tuples and last rounds, against simulation of who has whose
// data.
#include "algorithms/patterns/dissemination.hpp"

#include <cstdint>
#include <vector>

#include "algorithms/radix.hpp"
#include "tests/catch.hpp"

namespace papaya {
namespace {

using namespace patterns;

// How often each rank's data is in something, by its distance before the rank that has it; all ranks have
// alike.
using Counts = std::vector<std::uint32_t>;

void add(Counts& to, const Counts& from, std::int64_t distance) {
  const std::size_t size = to.size();
  const auto shift = static_cast<std::size_t>(distance) % size;
  for (std::size_t i = 0; i < size - shift; ++i) to[i + shift] += from[i];
  for (std::size_t i = size - shift; i < size; ++i) to[i + shift - size] += from[i];
}

// What a rank has after all rounds but the last, and what it had at two boundaries on the way.
struct Before {
  Counts all;
  Counts at_send;
  Counts at_left;
};

Before before_last_round(int ranks, int radix, const LastRound& last) {
  Before result;
  result.at_send = result.at_left = Counts(static_cast<std::size_t>(ranks), 0);
  Counts sum(static_cast<std::size_t>(ranks), 0);
  sum[0] = 1;
  const auto keep = [&](DataBoundary here) {
    if (last.sent != 0 && last.boundary == here) result.at_send = sum;
    if (last.left_out != 0 && last.left_boundary == here) result.at_left = sum;
  };
  keep({});
  for (int l = 1; l < dissemination_rounds(ranks, radix); ++l) {
    const Counts sent = sum;
    for (int j = 1; j <= radix; ++j) {
      add(sum, sent, j * dissemination_reach(radix, l - 1));
      keep({l, j});
    }
  }
  result.all = sum;
  return result;
}

bool every_rank_once(int ranks, int radix, const LastRound& last) {
  const Before before = before_last_round(ranks, radix, last);
  const std::int64_t all = dissemination_reach(radix, dissemination_rounds(ranks, radix) - 1);
  Counts result = before.all;
  for (int i = 1; i <= last.whole; ++i) add(result, before.all, i * all);
  if (last.sent != 0) add(result, before.at_send, (last.whole + 1) * all);
  for (std::size_t i = 0; i < result.size(); ++i)
    if (result[i] - before.at_left[i] != 1) return false;
  return true;
}

TEST_CASE("dissemination: the last round takes every rank's data once, 1 to 4096 ranks, radix 1 to 7") {
  int cut = 0;
  for (int radix = 1; radix <= 7; ++radix)
    for (int ranks = 2; ranks <= 4096; ++ranks) {
      const auto last = dissemination_last_round(ranks, radix);
      if (!last) continue;
      ++cut;
      if (!every_rank_once(ranks, radix, *last)) FAIL(ranks << " ranks, radix " << radix);
    }
  CHECK(cut > 7 * 16);
}

// By trying all pairs of boundaries, from how often ranks are counted instead of the formula.
TEST_CASE("dissemination: there is a last round wherever two boundaries fit") {
  for (int radix = 1; radix <= 7; ++radix)
    for (int ranks = 2; ranks <= 160; ++ranks) {
      const int rounds = dissemination_rounds(ranks, radix);
      std::vector<DataBoundary> boundaries = {{}};
      for (int l = 1; l < rounds; ++l)
        for (int j = 1; j <= radix; ++j) boundaries.push_back({l, j});
      bool fits = false;
      for (int whole = 0; whole <= radix && !fits; ++whole) {
        fits = every_rank_once(ranks, radix, {.whole = whole});
        for (const DataBoundary send : boundaries) {
          if (whole == radix) break;
          fits = fits || every_rank_once(ranks, radix, {.whole = whole, .sent = 1, .boundary = send});
          for (const DataBoundary left : boundaries)
            fits = fits ||
                   every_rank_once(ranks, radix,
                                   {.whole = whole, .sent = 1, .boundary = send, .left_out = 1, .left_boundary = left});
        }
      }
      if (fits != dissemination_last_round(ranks, radix).has_value()) FAIL(ranks << " ranks, radix " << radix);
    }
  SUCCEED();
}

TEST_CASE("dissemination: the paper's examples") {
  // 9 ranks, radix 2: a power of three.
  CHECK(dissemination_last_round(9, 2)->whole == 2);
  CHECK(dissemination_last_round(9, 2)->sent == 0);
  // 8 ranks, radix 2 (figure 1): the first sender sends all, the second x2 and x1 instead of x2, x1 and x0.
  const LastRound eight = *dissemination_last_round(8, 2);
  CHECK(eight.whole == 1);
  CHECK(eight.sent == 2);
  CHECK((eight.boundary == DataBoundary{1, 1}));
  CHECK(eight.left_out == 0);
  // s = 1 and l_rcv = l_snd = 0: P is reached after k - 1 rounds, so k is smaller to begin with.
  CHECK(dissemination_rounds(8, 1) == 3);
  CHECK(dissemination_rounds(9, 1) == 4);
  CHECK(dissemination_rounds(1, 3) == 0);
  CHECK(dissemination_rounds(2, 7) == 1);
}

TEST_CASE("dissemination: the tuple solves the paper's equation (8)") {
  const auto boundary_distance = [](DataBoundary b, int radix) -> std::int64_t {
    if (b.round == 0) return 0;
    std::int64_t sum = 0;
    for (int i = 0; i <= b.round - 2; ++i) sum += dissemination_reach(radix, i);
    return radix * sum + b.peer * dissemination_reach(radix, b.round - 1);
  };
  int found = 0;
  for (int radix = 1; radix <= 7; ++radix)
    for (int ranks = 2; ranks <= 4096; ++ranks) {
      const auto tuple = dissemination_tuple(ranks, radix);
      if (!tuple) continue;
      ++found;
      const std::int64_t all = dissemination_reach(radix, dissemination_rounds(ranks, radix) - 1);
      if (tuple->sender * all + boundary_distance(tuple->send, radix) - boundary_distance(tuple->receive, radix) !=
          ranks)
        FAIL(ranks << " ranks, radix " << radix);
    }
  CHECK(found > 0);
}

TEST_CASE("dissemination: whom a rank sends to receives from it") {
  for (int radix = 1; radix <= 4; ++radix)
    for (int ranks = 1; ranks <= 40; ++ranks)
      for (int round = 1; round <= dissemination_rounds(ranks, radix); ++round)
        for (int rank = 0; rank < ranks; ++rank)
          for (int i = 1; i <= radix; ++i)
            CHECK(dissemination_source(dissemination_target(rank, ranks, radix, round, i), ranks, radix, round, i) ==
                  rank);
}

// Times of n = 1..7, the first unused.
TEST_CASE("of the radices that are about as fast the one with the fewest rounds is taken") {
  using Times = std::vector<std::uint64_t>;
  // 4 participants: 2 rounds with n = 1 and 2, one with 3.
  CHECK(RadixChoice::fastest(4, 1, 3, Times{0, 100, 101, 109}) == 3);
  CHECK(RadixChoice::fastest(4, 1, 3, Times{0, 100, 101, 115}) == 1);
  CHECK(RadixChoice::fastest(4, 1, 3, Times{0, 150, 100, 160}) == 2);
  // 16 participants: rounds 4, 3, 2, 2, 2, 2, 2.
  CHECK(RadixChoice::fastest(16, 1, 7, Times{0, 100, 100, 100, 100, 100, 95, 100}) == 3);
  CHECK(RadixChoice::fastest(16, 1, 7, Times{0, 100, 100, 90, 90, 90, 80, 200}) == 6);
  CHECK(RadixChoice::fastest(2, 1, 1, Times{0, 100}) == 1);
  CHECK(RadixChoice::fastest(5, 4, 4, Times{0, 0, 0, 0, 7}) == 4);
}

}  // namespace
}  // namespace papaya
