// The stale synchronous parallel allreduce over shards, under every schedule of a few calls and under random ones.
#include "tests/catch.hpp"
#include "tests/unit/support/shard_world.hpp"

namespace papaya {
namespace {

// Every look is a choice, and a call looks at all that could have come: few calls have very many schedules. One shard
// has fewer notifications, and all that its keeper and two threads of one rank could do wrong.
TEST_CASE("ssp sharded: every schedule of a few calls is right") {
  const ShardJob jobs[] = {
      {.ranks = 1, .slack = 1, .calls = 3, .is_late = false},
      {.ranks = 2, .slack = 0, .calls = 3, .is_late = false},
      {.ranks = 2, .slack = 1, .calls = 3, .is_late = false, .is_consistent = true},
      {.ranks = 2, .slack = 1, .calls = 7, .is_late = false, .is_whole = true},
      {.ranks = 2, .slack = 1, .calls = 3, .is_late = true, .is_whole = true},
      {.ranks = 2,
       .slack = 0,
       .calls = 3,
       .is_late = false,
       .is_consistent = true,
       .has_thread = true,
       .is_whole = true},
      {.ranks = 2, .slack = 1, .calls = 4, .is_late = false, .has_thread = true, .is_whole = true},
  };
  explore<ShardWorld>(jobs);
}

TEST_CASE("ssp sharded: every schedule of more calls is right", "[.][deep]") {
  const ShardJob jobs[] = {
      {.ranks = 2, .slack = 1, .calls = 4, .is_late = false},
      {.ranks = 2, .slack = 1, .calls = 5, .is_late = true, .is_whole = true},
      {.ranks = 2, .slack = 1, .calls = 5, .is_late = false, .is_consistent = true},
      {.ranks = 2, .slack = 1, .calls = 7, .is_late = false, .has_thread = true, .is_whole = true},
      {.ranks = 3, .slack = 1, .calls = 3, .is_late = false, .is_whole = true},
      {.ranks = 2, .slack = 1, .calls = 2, .is_late = true},
  };
  explore<ShardWorld>(jobs);
}

TEST_CASE("ssp sharded: random schedules of many ranks") {
  const ShardJob jobs[] = {
      {.ranks = 3, .slack = 1, .calls = 10, .is_late = false, .has_thread = true},
      {.ranks = 4, .slack = 2, .calls = 10, .is_late = true, .is_consistent = true, .has_thread = true},
      {.ranks = 3, .slack = 3, .calls = 16, .is_late = false, .is_consistent = true},
      {.ranks = 4, .slack = 2, .calls = 10, .is_late = true, .has_thread = true},
      {.ranks = 7, .slack = 3, .calls = 8, .is_late = true},
  };
  explore_at_random<ShardWorld>(jobs);
}

}  // namespace
}  // namespace papaya
