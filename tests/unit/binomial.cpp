// Binomial trees: everybody is reached once, and what is combined does not depend on the root.
#include "algorithms/patterns/binomial.hpp"

#include <map>
#include <utility>
#include <vector>

#include "tests/catch.hpp"

namespace papaya {

TEST_CASE("binomial: every party but the root is one other's child, its parent's") {
  for (int parties = 1; parties <= 70; ++parties) {
    std::vector<int> parent(static_cast<std::size_t>(parties), -1);
    int children = 0;
    for (int r = 0; r < parties; ++r)
      patterns::for_each_binomial_child(r, parties, [&](int child) {
        parent[static_cast<std::size_t>(child)] = r;
        ++children;
      });
    CHECK(children == parties - 1);
    for (int r = 1; r < parties; ++r) CHECK(parent[static_cast<std::size_t>(r)] == patterns::binomial_parent(r));
  }
}

TEST_CASE("binomial: a reduction combines neighbouring blocks, the same for every root") {
  using Range = std::pair<int, int>;
  for (int parties = 1; parties <= 40; ++parties) {
    std::map<Range, int> combined;  // halves of what, and where they meet
    for (int root = 0; root < parties; ++root) {
      std::vector<int> given_to(static_cast<std::size_t>(parties));
      for (int me = 0; me < parties; ++me)
        given_to[static_cast<std::size_t>(me)] = patterns::for_each_block(me, parties, root, [](auto) {});
      // What a party gives, by the others' gifts before.
      const auto sum = [&](auto&& self, int me) -> Range {
        Range range{me, me + 1};
        patterns::for_each_block(me, parties, root, [&](patterns::BlockPartner partner) {
          REQUIRE(given_to[static_cast<std::size_t>(partner.party)] == me);
          const Range theirs = self(self, partner.party);
          REQUIRE((partner.is_right ? range.second == theirs.first : theirs.second == range.first));
          const int middle = partner.is_right ? range.second : range.first;
          range = partner.is_right ? Range{range.first, theirs.second} : Range{theirs.first, range.second};
          const int known = combined.emplace(range, middle).first->second;
          REQUIRE(known == middle);
        });
        return range;
      };
      CHECK(sum(sum, root) == Range{0, parties});
      CHECK(given_to[static_cast<std::size_t>(root)] == -1);
    }
  }
}

}  // namespace papaya
