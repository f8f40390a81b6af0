// The stale synchronous parallel allreduce on a ring, with threads as ranks. All schedules of a few calls: tests/unit.
#include <algorithm>
#include <vector>

#include "tests/catch.hpp"
#include "tests/protocol/ssp_ranks.hpp"

namespace papaya {
namespace {

const WeakDescriptor& ring() {
  return *find_weak("ssp_ring");
}

TEST_CASE("ssp ring: whole messages, one of every rank, none older than the slack", "[protocol]") {
  check_whole_messages(ring());
}

TEST_CASE("ssp ring: the same with blocks that are smaller than a rank's part", "[protocol]") {
  check_whole_messages(ring(), {1024});
}

// Around the ring, from the rank on whose part the element is of: the first parts have one element more.
double around(std::vector<double> values, std::size_t element, std::size_t count) {
  const std::size_t ranks = values.size();
  std::size_t part = 0;
  while (part + 1 < ranks && (part + 1) * (count / ranks) + std::min(part + 1, count % ranks) <= element) ++part;
  double sum = values[part];
  for (std::size_t step = 1; step < ranks; ++step) sum += values[(part + step) % ranks];
  return sum;
}

TEST_CASE("ssp ring: with slack 0 the same bits on all ranks, whatever their speed", "[protocol]") {
  check_bits(ring(), around);
}

TEST_CASE("ssp ring: a rank is slack calls ahead of others that keep step, and no more", "[protocol]") {
  check_slack(ring());
}

}  // namespace
}  // namespace papaya
