// What a threshold leaves: who takes part, the ways between those, and in which chunks the message goes.
#include "algorithms/patterns/threshold.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "algorithms/weak/threshold.hpp"
#include "tests/catch.hpp"

namespace papaya {
namespace {

TEST_CASE("threshold: a share is the fewest that are no less") {
  using patterns::share_of;
  for (std::size_t count = 0; count <= 1000; ++count)
    for (std::size_t percent = 1; percent <= 100; ++percent) {
      const std::size_t of_hundred = (count * percent + 99) / 100;
      if (share_of(static_cast<double>(percent) / 100, count) != of_hundred) {
        CAPTURE(count, percent);
        REQUIRE(share_of(static_cast<double>(percent) / 100, count) == of_hundred);
      }
    }
  CHECK(share_of(1e-12, 1000) == 1);
  CHECK(share_of(0.25, std::size_t{1} << 40) == std::size_t{1} << 38);
  CHECK(share_of(1, (std::size_t{1} << 60) + 1) == (std::size_t{1} << 60) + 1);
}

// Every number of ranks, every root, every threshold.
TEST_CASE("threshold: as many ranks as wanted take part, each with all between it and the root") {
  long wrong = 0;
  for (int ranks = 1; ranks <= 64; ++ranks)
    for (int root = 0; root < ranks; ++root) {
      std::vector<bool> fewer(static_cast<std::size_t>(ranks));
      for (int least = 1; least <= ranks; ++least) {
        const std::vector<bool> takes_part = patterns::taking_part(ranks, root, least);
        const auto is_in = [&](int rank) { return takes_part[static_cast<std::size_t>(rank)]; };
        wrong += std::count(takes_part.begin(), takes_part.end(), true) != least;
        wrong += !is_in(root);
        for (int rank = 0; rank < ranks; ++rank) {
          wrong += fewer[static_cast<std::size_t>(rank)] && !is_in(rank);
          const int parent = patterns::for_each_block(rank, ranks, root, [](auto) {});
          wrong += is_in(rank) && parent >= 0 && !is_in(parent);
        }
        fewer = takes_part;
      }
    }
  CHECK(wrong == 0);
}

TEST_CASE("threshold: the last stage's ranks are left out first, of one stage the farthest") {
  const auto of = [](int ranks, int root, int least) {
    std::vector<int> in;
    const std::vector<bool> takes_part = patterns::taking_part(ranks, root, least);
    for (int rank = 0; rank < ranks; ++rank)
      if (takes_part[static_cast<std::size_t>(rank)]) in.push_back(rank);
    return in;
  };
  CHECK(of(8, 0, 4) == std::vector{0, 2, 4, 6});
  CHECK(of(8, 0, 2) == std::vector{0, 4});
  CHECK(of(8, 0, 7) == std::vector{0, 1, 2, 3, 4, 5, 6});
  CHECK(of(8, 0, 5) == std::vector{0, 1, 2, 4, 6});
  CHECK(of(8, 3, 4) == std::vector{1, 3, 5, 7});
}

// The ways of a route reach all who take part from the root, and a reduction's operands are combined once each: in rank
// order, or, around, from the root on.
TEST_CASE("threshold: every way is a tree of those who take part") {
  using patterns::Route;
  long wrong = 0;
  for (int ranks = 1; ranks <= 20; ++ranks)
    for (int root = 0; root < ranks; ++root)
      for (int least = 1; least <= ranks; ++least)
        for (const Route route : {Route::binomial, Route::around, Route::both_sides}) {
          const std::vector<bool> takes_part = patterns::taking_part(ranks, root, least);
          const auto combined = [&](auto&& self, int rank, int depth) -> std::vector<int> {
            if (depth > ranks) return {};
            std::vector<int> operands{rank};
            for (const patterns::Child& child : patterns::neighbours_of(rank, root, route, takes_part).children) {
              wrong += patterns::neighbours_of(child.rank, root, route, takes_part).parent != rank;
              const std::vector<int> theirs = self(self, child.rank, depth + 1);
              operands.insert(child.is_right ? operands.end() : operands.begin(), theirs.begin(), theirs.end());
            }
            return operands;
          };
          std::vector<int> expected;
          for (int i = 0; i < ranks; ++i) {
            const int rank = route == Route::around ? (root + i) % ranks : i;
            if (takes_part[static_cast<std::size_t>(rank)]) expected.push_back(rank);
          }
          wrong += combined(combined, root, 0) != expected;
          wrong += patterns::neighbours_of(root, root, route, takes_part).parent != -1;
        }
  CHECK(wrong == 0);
}

// What papaya chooses where no chunk is asked for: of_ranks, route, chunk, slots.
TEST_CASE("threshold: chunks are shorter along a longer chain, and as many bytes are under way") {
  constexpr std::size_t most_bytes = 61440;
  constexpr std::array<std::int64_t, 4> chosen{0, 0, 0, 16};
  Reduction commutes;
  commutes.commutative = true;
  Reduction ordered;
  ordered.commutative = false;
  const auto plan_of = [](int ranks, std::size_t bytes, const Reduction& reduction, const auto& values) {
    return ThresholdPlan({.ranks = ranks,
                          .count = bytes / 24,
                          .element_bytes = 24,
                          .root = 0,
                          .reduction = &reduction,
                          .share = 1,
                          .values = values},
                         ThresholdPlan::Towards::root);
  };
  // threshold.hpp has the formula.
  const auto time_of = [](int ranks, std::size_t bytes, std::uint64_t chunks) {
    const auto count = static_cast<double>(chunks);
    return (count + ranks - 2) * (static_cast<double>(bytes) / count + 32768);
  };
  for (const Reduction* const reduction : {&commutes, &ordered})
    for (const int ranks : {2, 3, 4, 8, 16, 64})
      for (std::size_t bytes = 0; bytes <= std::size_t{16} << 20; bytes = 2 * bytes + 24) {
        const ThresholdPlan plan = plan_of(ranks, bytes, *reduction, chosen);
        CAPTURE(ranks, bytes, plan.chunks(), plan.chunk_bytes());
        const std::size_t whole = bytes / 24 * 24;
        std::size_t sent = 0;
        for (std::uint64_t chunk = 0; chunk < plan.chunks(); ++chunk) sent += plan.bytes_in(chunk);
        CHECK(sent == whole);
        CHECK(plan.chunk_bytes() <= most_bytes);
        CHECK(plan.slots() >= 2);
        if (plan.chunks() > 1) CHECK(plan.slots() * plan.chunk_bytes() <= 16 * most_bytes);
        const bool is_chain = plan.neighbours(0).children.size() == 1 && ranks > 2;
        if (is_chain && reduction == &commutes) {
          const std::uint64_t of_most = (whole + most_bytes - 1) / most_bytes;
          CHECK(time_of(ranks, whole, plan.chunks()) <= 1.01 * time_of(ranks, whole, of_most));
        }
      }
  CHECK(plan_of(8, std::size_t{8} << 20, commutes, chosen).in_force(2, 0) == 61440);
  CHECK(plan_of(8, std::size_t{256} << 10, commutes, chosen).in_force(2, 0) == 37824);
  CHECK(plan_of(64, std::size_t{2} << 20, commutes, chosen).in_force(2, 0) == 33288);
  // Who asks for another gets it.
  constexpr std::array<std::int64_t, 4> asked{0, 2, 1200, 5};
  const ThresholdPlan plan = plan_of(8, std::size_t{256} << 10, commutes, asked);
  CHECK(plan.in_force(2, 1200) == 1200);
  CHECK(plan.elements_in(0) == 50);
  CHECK(plan.slots() == 5);
}

}  // namespace
}  // namespace papaya
