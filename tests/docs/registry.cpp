// The tests beside this file run with the sample of docs/add_an_algorithm.md and nothing else.
#include "algorithms/algorithm.hpp"
#include "tests/catch.hpp"

namespace papaya {

TEST_CASE("the registry holds the documented algorithm alone", "[docs]") {
  REQUIRE(registry().size() == 1);
  CHECK(registry().front()->name == "my_algorithm");
  CHECK(registry().front()->collective == Collective::allreduce);
}

}  // namespace papaya
