// Which calls of a run belong together.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "profiler/analysis/call_stream.hpp"
#include "profiler/analysis/computing.hpp"
#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

using support::Record;

// A call whose arrivals are known.
struct MatchedCall {
  std::uint64_t call = 0;
  bool is_complete = false;
  std::vector<std::int32_t> ranks;  // in the communicator
  report::Order order;
  std::size_t root = 0;
};

std::vector<MatchedCall> matched(const std::vector<Record>& all) {
  const report::Run run = support::load(all);
  report::Groups groups(run);
  std::vector<MatchedCall> calls;
  report::CallStream(run, report::Clocks(run), groups).read({}, [&](const report::GroupCall& call) {
    if (!call.is_compared()) return;
    MatchedCall& matched = calls.emplace_back();
    matched.call = call.call;
    matched.is_complete = call.match == report::Match::complete;
    for (const report::Sighting& sighting : call.sightings)
      matched.ranks.push_back(call.group->members[sighting.member].rank);
    matched.order =
        report::order_of(call.sightings.size(), [&](std::size_t i) { return call.sightings[i].arrival_ns; });
    matched.root = report::roles_of(call).root;
  });
  return calls;
}

TEST_CASE("a call without the ranks that have no record is matched, and marked") {
  std::vector<Record> all = support::records(4);
  for (Record& one : all) one.add_call(Collective::allreduce, 0, 1000.0 * (4 - one.header.rank), 9000);
  for (Record& one : all) one.finalize(20000);
  std::vector<MatchedCall> calls = matched(all);
  REQUIRE(calls.size() == 1);
  CHECK(calls[0].is_complete);
  CHECK(calls[0].order.last == 0);
  CHECK(calls[0].order.second == 1);
  CHECK(calls[0].order.first == 3);

  all.erase(all.begin());
  calls = matched(all);
  REQUIRE(calls.size() == 1);
  CHECK_FALSE(calls[0].is_complete);
  CHECK(calls[0].ranks.size() == 3);
  CHECK(calls[0].ranks[calls[0].order.last] == 1);
}

TEST_CASE("calls that lack a rank which has a record are not matched") {
  std::vector<Record> all = support::records(3);
  for (Record& one : all)
    if (one.header.rank != 2) one.add_call(Collective::barrier, 0, 1000, 2000);
  for (Record& one : all) one.finalize(20000);
  CHECK(matched(all).empty());
}

TEST_CASE("a call that is twice in the record of one rank is not matched") {
  for (const int ranks : {2, 3}) {
    std::vector<Record> all = support::records(ranks);
    for (Record& one : all) one.add_call(Collective::barrier, 0, 1000, 2000);
    // As many as there are ranks, but the last one's is missing.
    for (int rank = 0; rank + 1 < ranks; ++rank) all[rank].add_call(Collective::barrier, 1, 3000, 4000);
    all[0].add_call(Collective::barrier, 1, 5000, 6000);
    for (Record& one : all) one.finalize(20000);
    const std::vector<MatchedCall> calls = matched(all);
    REQUIRE(calls.size() == 1);
    CHECK(calls[0].call == 0);
  }
}

TEST_CASE("calls with different roots are not matched") {
  std::vector<Record> all = support::records(2);
  for (Record& one : all) one.add_call(Collective::bcast, 0, 1000, 2000, 8, one.header.rank);
  for (Record& one : all) one.add_call(Collective::bcast, 1, 3000, 4000, 8, 1);
  for (Record& one : all) one.finalize(20000);
  const std::vector<MatchedCall> calls = matched(all);
  REQUIRE(calls.size() == 1);
  CHECK(calls[0].call == 1);
  CHECK(calls[0].root == 1);
}

TEST_CASE("the median of many values is the one in the middle of their order") {
  std::uint64_t state = 1;
  for (const std::size_t size : {1, 2, 33, 64, 1000, 1001})
    for (const std::uint64_t different : {1ull, 3ull, 1ull << 40}) {
      std::vector<double> values;
      for (std::size_t i = 0; i < size; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        values.push_back(static_cast<double>((state >> 20) % different));
      }
      std::vector<double> sorted = values;
      std::sort(sorted.begin(), sorted.end());
      CHECK(report::lower_median(values) == sorted[(size - 1) / 2]);
    }
}

}  // namespace
}  // namespace papaya
