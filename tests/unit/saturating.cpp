#include "base/saturating.hpp"

#include "tests/catch.hpp"

using namespace papaya;

TEST_CASE("a count times a size beyond 64 bits is no small size") {
  constexpr std::uint64_t largest = ~std::uint64_t{0};
  STATIC_REQUIRE(saturating::product(3, 8) == 24);
  STATIC_REQUIRE(saturating::product((std::uint64_t{1} << 61) + 1, 8) == largest);  // 8 of the 2^64 + 8 would be left
  STATIC_REQUIRE(saturating::product(std::uint64_t{1} << 61, 7) == 7 * (std::uint64_t{1} << 61));
  STATIC_REQUIRE(saturating::product(largest, 0) == 0);
  STATIC_REQUIRE(saturating::sum(largest, 1) == largest);
  STATIC_REQUIRE(saturating::sum(largest - 1, 1) == largest);
}
