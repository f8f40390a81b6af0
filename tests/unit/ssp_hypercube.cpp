// The stale synchronous parallel allreduce on a hypercube, under every schedule of a few calls and under random ones.
#include "tests/catch.hpp"
#include "tests/unit/support/ssp_world.hpp"

namespace papaya {
namespace {

constexpr const char* name = "ssp_hypercube";

// Two ranks make enough calls for every slot to be written again while it might still be read.
TEST_CASE("ssp hypercube: every schedule of a few calls is right") {
  const SspJob jobs[] = {{name, 1, 0, 3, false}, {name, 2, 0, 4, false}, {name, 2, 1, 7, false},
                         {name, 2, 0, 4, true},  {name, 2, 1, 6, true},  {name, 3, 0, 3, false},
                         {name, 3, 1, 3, false}, {name, 4, 0, 2, false}};
  explore<SspWorld>(jobs);
}

// A minute: build/tests/unit_tests "[deep]"
TEST_CASE("ssp hypercube: every schedule of more calls is right", "[.][deep]") {
  const SspJob jobs[] = {{name, 3, 1, 5, false}, {name, 3, 1, 3, true}, {name, 4, 1, 2, false}};
  explore<SspWorld>(jobs);
}

TEST_CASE("ssp hypercube: random schedules of many ranks") {
  const SspJob jobs[] = {{name, 5, 1, 16, false}, {name, 6, 2, 16, true},  {name, 7, 1, 12, true},
                         {name, 8, 0, 8, false},  {name, 8, 2, 16, false}, {name, 8, 5, 30, true}};
  explore_at_random<SspWorld>(jobs);
}

}  // namespace
}  // namespace papaya
