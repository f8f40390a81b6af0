// Which results of weakly consistent collectives the benchmark takes for right.
#include <vector>

#include "tests/catch.hpp"
#include "tools/bench/weak_data.hpp"

namespace papaya::bench {

namespace {

constexpr std::size_t count = 40;
constexpr int ranks = 3;

// What a rank brings to call number `call`.
std::vector<double> contribution(WeakCollective collective, int rank, int call) {
  WeakData data(collective, {"one"}, false, rank, ranks, 0, count);
  for (int i = 0; i < call; ++i) data.fill();
  return {data.contribution(), data.contribution() + count};
}

// After three calls.
class Checked {
 public:
  Checked(WeakCollective collective, WeakCandidate candidate, bool of_ranks = false, int rank = 0)
      : collective_(collective), data_(collective, candidate, of_ranks, rank, ranks, 0, count) {
    for (int i = 0; i < 3; ++i) data_.fill();
  }
  Checked& zero(std::size_t elements = count) {
    for (std::size_t i = 0; i < elements; ++i) data_.result()[i] = 0;
    return *this;
  }
  Checked& add(int rank, int call, std::size_t elements = count) {
    const std::vector<double> values = contribution(collective_, rank, call);
    for (std::size_t i = 0; i < elements; ++i) data_.result()[i] += values[i];
    return *this;
  }
  Checked& spoil(std::size_t i) {
    data_.result()[i] += 1;
    return *this;
  }
  bool is(std::uint64_t oldest, int part, std::size_t elements = count) {
    return data_.check({.clock = 3, .oldest = oldest, .ranks = part, .elements = elements});
  }
  WeakData& data() { return data_; }

 private:
  WeakCollective collective_;
  WeakData data_;
};

}  // namespace

TEST_CASE("a stale sum has one contribution of each rank, within the slack") {
  const auto checked = [](int slack) { return Checked(WeakCollective::ssp_allreduce, {"one", slack}).zero(); };
  CHECK(checked(0).add(0, 3).add(1, 3).add(2, 3).is(3, 3));
  CHECK(checked(2).add(0, 3).add(1, 1).add(2, 2).is(1, 3));
  CHECK(checked(2).add(0, 3).add(1, 6).add(2, 6).is(3, 3));
  CHECK_FALSE(checked(2).add(0, 6).add(1, 6).add(2, 7).is(3, 3));  // newer than can be
  CHECK_FALSE(checked(0).add(0, 3).add(1, 3).add(2, 4).is(3, 3));
  CHECK_FALSE(checked(1).add(0, 3).add(1, 1).add(2, 2).is(1, 3));  // too old
  CHECK_FALSE(checked(2).add(0, 1).add(1, 1).add(2, 1).is(2, 3));  // older than it says
  CHECK_FALSE(checked(2).add(0, 3).add(1, 3).is(3, 3));            // one is missing
  CHECK_FALSE(checked(2).add(0, 3).add(1, 3).add(1, 3).is(3, 3));  // one counts twice
  CHECK_FALSE(checked(0).add(0, 3).add(1, 3).add(2, 3).spoil(count - 1).is(3, 3));
  CHECK_FALSE(checked(2).add(0, 3).add(1, 3).add(2, 3).data().check({.clock = 2, .oldest = 2, .ranks = 3}));
}

TEST_CASE("a threshold broadcast brings what it says and touches nothing else") {
  const auto bring = [](double share, bool of_ranks, std::size_t elements) {
    Checked one(WeakCollective::threshold_bcast, {"one", std::nullopt, share}, of_ranks, 1);
    return one.zero(elements).add(0, 3, elements);
  };
  CHECK(bring(0.25, false, 10).is(3, 3, 10));
  CHECK_FALSE(bring(0.25, false, 9).is(3, 3, 9));
  CHECK_FALSE(bring(0.25, false, 10).spoil(20).is(3, 3, 10));
  CHECK_FALSE(bring(0.25, false, 10).spoil(3).is(3, 3, 10));
  CHECK(bring(0.5, true, count).is(3, 2, count));
  CHECK(bring(0.5, true, 0).is(3, 2, 0));
  CHECK_FALSE(bring(0.5, true, 0).is(3, 1, 0));
  CHECK_FALSE(bring(0.5, true, 10).is(3, 2, 10));
}

TEST_CASE("a threshold reduction has as many ranks as it says") {
  const auto checked = [](double share, bool of_ranks) {
    return Checked(WeakCollective::threshold_reduce, {"one", std::nullopt, share}, of_ranks).zero();
  };
  CHECK(checked(1, false).add(0, 3).add(1, 3).add(2, 3).is(3, 3));
  CHECK_FALSE(checked(1, false).add(0, 3).add(1, 3).add(1, 3).is(3, 3));
  CHECK_FALSE(checked(1, false).add(0, 3).add(1, 3).add(2, 2).is(3, 3));
  CHECK_FALSE(checked(0.5, false).add(0, 3).add(1, 3).add(2, 3).is(3, 3, 20));  // more than it says
  CHECK(checked(0.5, true).add(0, 3).add(2, 3).is(3, 2));
  CHECK_FALSE(checked(0.5, true).add(0, 3).is(3, 1));
  CHECK_FALSE(checked(0.5, true).add(0, 3).add(2, 3).is(3, 3));
}

TEST_CASE("a sum of some contributions is the same mixture everywhere") {
  const auto checked = [] { return Checked(WeakCollective::partial_allreduce, {"one"}).zero(); };
  CHECK(checked().is(0, 0));
  CHECK(checked().add(1, 1).add(1, 2).add(2, 3).is(1, 2));
  CHECK_FALSE(checked().add(1, 1).spoil(7).is(1, 1));
  CHECK_FALSE(checked().add(1, 1).add(2, 1, 20).is(1, 2));
}

TEST_CASE("what a sparse sum has received is added up") {
  Checked one(WeakCollective::sparse_allreduce, {"one", std::nullopt, 0.1});
  one.zero().add(0, 3);
  CHECK(one.is(3, 3));
  const std::vector<double> last = contribution(WeakCollective::sparse_allreduce, 0, 3);
  CHECK(std::vector<double>(one.data().received().begin(), one.data().received().end()) == last);
  double brought = 0;
  for (int call = 1; call <= 3; ++call) brought += contribution(WeakCollective::sparse_allreduce, 0, call)[5];
  CHECK(one.data().brought()[5] == brought);
}

}  // namespace papaya::bench
