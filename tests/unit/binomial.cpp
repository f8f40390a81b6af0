// Binomial trees: everybody is reached once, and what is combined does not depend on the root.
#include "algorithms/patterns/binomial.hpp"

#include <map>
#include <utility>
#include <vector>

#include "tests/catch.hpp"

namespace papaya {

TEST_CASE("binomial: every participant but the root is one other's child, its parent's") {
  for (int participants = 1; participants <= 70; ++participants) {
    std::vector<int> parent(static_cast<std::size_t>(participants), -1);
    int children = 0;
    for (int r = 0; r < participants; ++r)
      patterns::for_each_binomial_child(r, participants, [&](int child) {
        parent[static_cast<std::size_t>(child)] = r;
        ++children;
      });
    CHECK(children == participants - 1);
    for (int r = 1; r < participants; ++r) CHECK(parent[static_cast<std::size_t>(r)] == patterns::binomial_parent(r));
  }
}

TEST_CASE("binomial: a reduction combines neighbouring blocks, the same for every root") {
  using Range = std::pair<int, int>;
  for (int participants = 1; participants <= 40; ++participants) {
    std::map<Range, int> combined;  // halves of what, and where they meet
    for (int root = 0; root < participants; ++root) {
      std::vector<int> given_to(static_cast<std::size_t>(participants));
      for (int me = 0; me < participants; ++me)
        given_to[static_cast<std::size_t>(me)] = patterns::for_each_block(me, participants, root, [](auto) {});
      // What a participant gives, by the others' gifts before.
      const auto sum = [&](auto&& self, int me) -> Range {
        Range range{me, me + 1};
        patterns::for_each_block(me, participants, root, [&](patterns::BlockPartner partner) {
          REQUIRE(given_to[static_cast<std::size_t>(partner.participant)] == me);
          const Range theirs = self(self, partner.participant);
          REQUIRE((partner.is_right ? range.second == theirs.first : theirs.second == range.first));
          const int middle = partner.is_right ? range.second : range.first;
          range = partner.is_right ? Range{range.first, theirs.second} : Range{theirs.first, range.second};
          const int known = combined.emplace(range, middle).first->second;
          REQUIRE(known == middle);
        });
        return range;
      };
      CHECK(sum(sum, root) == Range{0, participants});
      CHECK(given_to[static_cast<std::size_t>(root)] == -1);
    }
  }
}

}  // namespace papaya
