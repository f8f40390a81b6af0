// The stale synchronous parallel allreduce on a hypercube, with threads as ranks. All schedules of a few calls:
// tests/unit.
#include <vector>

#include "tests/catch.hpp"
#include "tests/protocol/ssp_ranks.hpp"

namespace papaya {
namespace {

const WeakDescriptor& hypercube() {
  return *find_weak("ssp_hypercube");
}

TEST_CASE("ssp hypercube: whole messages, one of every rank, none older than the slack", "[protocol]") {
  check_whole_messages(hypercube());
}

// Contributions combined as the hypercube does: pairs first where ranks are too many, then neighbours.
double in_fixed_order(std::vector<double> values, std::size_t /*element*/, std::size_t /*count*/) {
  std::size_t positions = 1;
  while (2 * positions <= values.size()) positions *= 2;
  for (std::size_t extra = values.size() - positions, i = 0; i < extra; ++i) {
    values[i] += values[i + 1];
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  for (; positions > 1; positions /= 2)
    for (std::size_t i = 0; i < positions / 2; ++i) values[i] = values[2 * i] + values[2 * i + 1];
  return values[0];
}

TEST_CASE("ssp hypercube: with slack 0 the same bits on all ranks, whatever their speed", "[protocol]") {
  check_bits(hypercube(), in_fixed_order);
}

TEST_CASE("ssp hypercube: a rank is slack calls ahead of others that keep step, and no more", "[protocol]") {
  check_slack(hypercube());
}

}  // namespace
}  // namespace papaya
