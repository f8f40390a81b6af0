// What a rank is inside, looked up in the file that it records into.
#include "profiler/record/live.hpp"

#include <utility>

#include "profiler/record/recorder.hpp"
#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

struct Rank {
  Rank() {
    std::string error;
    REQUIRE(recorder.open(path, capacity, {}, error));
    REQUIRE(live.open(path));
  }
  std::uint64_t enter(std::uint64_t ticks, Form form = Form::blocking) {
    arrival = {ticks, 1, calls++, 8, -1, Collective::allreduce, form};
    return recorder.begin(arrival, 0);
  }
  void leave(std::uint64_t number) { recorder.finish(number, arrival, arrival.ticks + 5, 0, 0); }

  static constexpr std::uint64_t capacity = 1024;
  const support::Folder folder;
  const std::string path = folder.path() + "/rank-00000.pap";
  Recorder recorder;
  LiveRecord live;
  Recorder::Arrival arrival{};
  std::uint64_t calls = 0;
};

TEST_CASE("live: the call that a rank has been in longest") {
  Rank rank;
  CHECK(rank.live.look() == 0);
  const std::uint64_t first = rank.enter(100);
  CHECK(rank.live.look() == 100);
  const std::uint64_t second = rank.enter(200);  // another thread
  CHECK(rank.live.look() == 100);
  rank.leave(first);
  CHECK(rank.live.look() == 200);
  rank.leave(second);
  CHECK(rank.live.look() == 0);
}

TEST_CASE("live: a call that was told of is not told of again, a later one is") {
  Rank rank;
  const std::uint64_t first = rank.enter(100);
  CHECK(rank.live.look() == 100);
  rank.enter(150);
  rank.live.pass_over(100);
  CHECK(rank.live.look() == 150);
  rank.live.pass_over(150);
  CHECK(rank.live.look() == 0);
  rank.enter(200);
  CHECK(rank.live.look() == 200);
  rank.leave(first);
  CHECK(rank.live.look() == 200);
}

TEST_CASE("live: a call is seen though its thread writes it after another has begun one") {
  Rank rank;
  const std::uint64_t slow = rank.enter(100);
  const std::uint64_t quick = rank.enter(200);
  auto* const record = reinterpret_cast<std::byte*>(&rank.recorder.header());
  trace::Event& event = reinterpret_cast<trace::Event*>(record + trace::events_offset)[slow];
  const std::uint32_t commit = std::exchange(event.commit, 0);  // it is not written yet
  CHECK(rank.live.look() == 200);
  rank.leave(quick);
  CHECK(rank.live.look() == 0);
  event.commit = commit;
  CHECK(rank.live.look() == 100);
  rank.leave(slow);
  CHECK(rank.live.look() == 0);
}

TEST_CASE("live: times are those of the record, however the wall clock is set") {
  Rank rank;
  trace::Header& header = rank.recorder.header();
  header.begin_ticks = 1000;
  header.begin_unix_ns = 5'000'000'000;
  header.ns_per_tick = 0.5;
  CHECK(rank.live.unix_ns(3000) == 5'000'001'000);
}

TEST_CASE("live: neither calls that only start something nor such as have failed") {
  Rank rank;
  rank.enter(100, Form::nonblocking);
  rank.recorder.take_back(rank.enter(200));
  CHECK(rank.live.look() == 0);
  rank.enter(300);
  CHECK(rank.live.look() == 300);
}

TEST_CASE("live: among more calls than are read at once, and round the ring") {
  Rank rank;
  for (int round = 0; round < 7; ++round) {
    for (int i = 0; i < 700; ++i) rank.leave(rank.enter(static_cast<std::uint64_t>(i + 1)));
    const std::uint64_t ticks = 10000 + static_cast<std::uint64_t>(round);
    const std::uint64_t number = rank.enter(ticks);
    for (int i = 0; i < 10 * round; ++i) rank.leave(rank.enter(20000));
    CHECK(rank.live.look() == ticks);
    rank.arrival.ticks = ticks;
    rank.leave(number);
    CHECK(rank.live.look() == 0);
  }
  // Overwritten while the rank was in it: nothing is known of it any more.
  rank.enter(5);
  CHECK(rank.live.look() == 5);
  for (std::uint64_t i = 0; i < Rank::capacity; ++i) rank.leave(rank.enter(7));
  CHECK(rank.live.look() == 0);
}

TEST_CASE("live: what is no record is not opened") {
  const support::Folder folder;
  LiveRecord live;
  CHECK_FALSE(live.open(folder.path() + "/none"));
  folder.write("empty", std::string());
  CHECK_FALSE(live.open(folder.path() + "/empty"));
  folder.write("other", std::string(20000, 'x'));
  CHECK_FALSE(live.open(folder.path() + "/other"));
}

}  // namespace
}  // namespace papaya
