// Solo and majority allreduce, under every schedule of a few calls and under random ones: no contribution is lost, and
// none is in two results.
#include "tests/catch.hpp"
#include "tests/unit/support/partial_world.hpp"

namespace papaya {
namespace {

TEST_CASE("partial allreduce: every schedule of a few calls is right") {
  const PartialJob jobs[] = {{Starter::first, 1, 0, 3}, {Starter::first, 2, 0, 3}, {Starter::first, 2, 1, 3},
                             {Starter::drawn, 2, 0, 3}, {Starter::drawn, 2, 1, 4}, {Starter::first, 3, 0, 1},
                             {Starter::drawn, 3, 0, 1}};
  explore<PartialWorld>(jobs);
}

// A minute: build/tests/unit_tests "[deep]"
TEST_CASE("partial allreduce: every schedule of more calls is right", "[.][deep]") {
  const PartialJob jobs[] = {{Starter::first, 2, 1, 4}, {Starter::first, 3, 1, 2}, {Starter::drawn, 3, 0, 2}};
  explore<PartialWorld>(jobs);
}

TEST_CASE("partial allreduce: random schedules of many ranks") {
  const PartialJob jobs[] = {{Starter::first, 3, 0, 20, true}, {Starter::first, 5, 2, 20, true},
                             {Starter::first, 8, 4, 20, true}, {Starter::drawn, 3, 0, 20, true},
                             {Starter::drawn, 5, 1, 20, true}, {Starter::drawn, 8, 4, 20, true}};
  explore_at_random<PartialWorld>(jobs);
}

}  // namespace
}  // namespace papaya
