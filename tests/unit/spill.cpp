// What the ring loses: written in time, read back in its place, counted where it was not.
#include "profiler/record/spill.hpp"

#include <unistd.h>

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "profiler/record/recorder.hpp"
#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

using report::Run;
using report::Trouble;
using support::Folder;
using support::Record;
using trace::spill::State;

constexpr std::uint64_t ring = 64;  // stretches of 8, written once 32 younger events have begun
constexpr std::uint64_t plenty = 1 << 20;

// One rank that records into a small ring, its spiller driven by hand.
struct Rank {
  explicit Rank(std::uint64_t limit = plenty) {
    std::string error;
    REQUIRE(recorder.open(path, ring, std::vector<std::string_view>(300, "any"), error));
    trace::Header& header = recorder.header();
    header.ranks = 1;
    header.nodes = 1;
    auto* const base = reinterpret_cast<std::byte*>(&header);
    spiller = std::make_unique<Spiller>(header, reinterpret_cast<trace::Event*>(base + trace::events_offset));
    REQUIRE(spiller->open(path + "z", path + "z", limit));
    recorder.add_communicator(support::world_id, 0, 1, 0, 1, "MPI_COMM_WORLD");
  }

  std::uint64_t begin() {
    const std::uint64_t call = next++;
    return recorder.begin({1000 + 10 * call, support::world_id, call, 8, -1, Collective::barrier, Form::blocking}, 0);
  }
  void finish(std::uint64_t number) {
    recorder.finish(number, {1000 + 10 * number, support::world_id, number, 8, -1, Collective::barrier, Form::blocking},
                    1005 + 10 * number, 0, 3);
  }
  void record(std::uint64_t calls, std::uint64_t spill_every) {
    for (std::uint64_t i = 0; i < calls; ++i) {
      finish(begin());
      if (next % spill_every == 0) spiller->spill();
    }
  }
  Run read() {
    spiller->stop();
    recorder.close();
    return report::load_run(folder.path());
  }

  Folder folder;
  const std::string path = folder.path() + "/rank-00000.pap";
  Recorder recorder;
  std::unique_ptr<Spiller> spiller;
  std::uint64_t next = 0;
};

std::vector<std::uint64_t> calls_of(const report::RankFile& file) {
  std::vector<std::uint64_t> calls;
  for (const trace::Event& event : file.events) calls.push_back(event.call);
  return calls;
}

std::vector<std::uint64_t> numbers(std::uint64_t from, std::uint64_t to) {
  std::vector<std::uint64_t> all;
  for (; from < to; ++from) all.push_back(from);
  return all;
}

TEST_CASE("CRC-32C of its check value") {
  CHECK(crc32c("123456789", 9) == 0xe3069283u);
}

TEST_CASE("events as columns and back") {
  std::mt19937_64 random(1);
  for (const std::size_t count : {1, 2, 7, 1000}) {
    std::vector<trace::Event> events(count);
    for (trace::Event& event : events) {
      trace::spill::Words words;
      for (std::uint64_t& word : words) word = random();
      event = std::bit_cast<trace::Event>(words);
    }
    std::vector<std::uint64_t> columns(count * trace::spill::words_in_event);
    trace::spill::to_columns(events, columns.data());
    std::vector<trace::Event> back(count);
    trace::spill::from_columns(columns.data(), back);
    CHECK(std::memcmp(events.data(), back.data(), count * sizeof(trace::Event)) == 0);
  }
}

TEST_CASE("however often the ring wraps, every call is there once and in order") {
  Rank rank;
  rank.record(1003, 8);
  const Run run = rank.read();
  CHECK(rank.spiller->file().state() == State::closed);
  REQUIRE(run.problems.empty());
  const report::RankFile& file = run.files.at(0);
  CHECK(calls_of(file) == numbers(0, 1003));
  CHECK(file.gaps.empty());
  CHECK(file.overwritten_events == 0);
  CHECK(file.skipped_events == 0);
  CHECK(file.events[500].arrival_ticks == 6000);
  CHECK(file.events[500].exit_ticks == 6005);
  CHECK(file.events[500].reason == 3);
  const auto analysis = report::report_on(run);
  CHECK(analysis.events_kept == 1003);
  CHECK_FALSE(support::has_note(analysis, "Dropped"));
  // In MPI_Finalize only the ring is read, and the report says so.
  const auto at_end = report::report_on(report::load_run(rank.folder.path(), {}, report::Extent::rings));
  CHECK(at_end.events_kept == ring);
  CHECK(support::has_note(at_end, "the last 64 of 1,003 calls"));
  CHECK(support::has_note(at_end, "reads older calls from the trace"));
  CHECK_FALSE(support::has_note(at_end, "Dropped"));
}

TEST_CASE("a run that the ring holds spills nothing it would need") {
  Rank rank;
  rank.record(60, 8);
  const Run run = rank.read();
  CHECK(calls_of(run.files.at(0)) == numbers(0, 60));
}

TEST_CASE("a spiller that falls behind loses calls, and which is known") {
  Rank rank;
  rank.record(200, 8);
  rank.record(200, 1000);  // three rings without it
  rank.record(200, 8);
  const Run run = rank.read();
  REQUIRE(run.problems.empty());
  const report::RankFile& file = run.files.at(0);
  REQUIRE(file.gaps.size() == 1);
  const report::Gap gap = file.gaps[0];
  CHECK(gap.events > 100);
  CHECK(gap.events % 8 == 0);
  CHECK(file.overwritten_events == gap.events);
  auto expected = numbers(0, gap.before);
  for (const std::uint64_t number : numbers(gap.before + gap.events, 600)) expected.push_back(number);
  CHECK(calls_of(file) == expected);
  const auto analysis = report::report_on(run);
  CHECK(support::has_note(analysis, "Dropped from the trace: " + std::to_string(gap.events) + " of 600 calls"));
  CHECK(support::has_note(analysis, "faster than they could be written"));
  // The run's time less that of the gap.
  CHECK(analysis.recorded_ns > 0);
  CHECK(analysis.recorded_ns < analysis.run_ns - 9.0 * static_cast<double>(gap.events));
}

TEST_CASE("no more than the limit is written, and what that drops is said") {
  Rank rank(1000);
  rank.record(2000, 8);
  CHECK(rank.spiller->file().state() == State::limited);
  const Run run = rank.read();
  REQUIRE(run.problems.empty());
  CHECK(rank.folder.bytes_of("rank-00000.papz").size() <= 1000);
  const report::RankFile& file = run.files.at(0);
  CHECK(file.spill_limit == 1000);
  REQUIRE(file.gaps.size() == 1);
  CHECK(file.gaps[0].before >= 8);
  CHECK(file.events.size() == file.gaps[0].before + ring);
  CHECK(file.overwritten_events == 2000 - file.events.size());
  const auto analysis = report::report_on(run);
  CHECK(support::has_note(analysis, "limit of 1,000 bytes on rank 0; PAPAYA_TRACE_LIMIT"));
}

TEST_CASE("a file that is gone from its descriptor is found again, one that is gone ends the trace") {
  for (const bool is_there : {true, false}) {
    Rank rank;
    rank.record(100, 8);
    // What a program does that closes all descriptors and opens its own.
    const int own = dup(STDERR_FILENO);
    for (int descriptor = own - 1; descriptor > STDERR_FILENO; --descriptor) {
      char path[256] = "";
      const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
      if (readlink(link.c_str(), path, sizeof path - 1) > 0 && std::string(path) == rank.path + "z")
        dup2(own, descriptor);
    }
    if (!is_there) REQUIRE(unlink((rank.path + "z").c_str()) == 0);
    rank.record(100, 8);
    CHECK(rank.spiller->file().state() == (is_there ? State::open : State::failed));
    const Run run = rank.read();
    close(own);
    CHECK(run.files.at(0).events.size() == (is_there ? 200 : ring));
    CHECK(run.problems.empty());
  }
}

TEST_CASE("the end of a call that outlasts its place in the ring") {
  Rank rank;
  rank.record(5, 8);
  const std::uint64_t number = rank.begin();
  rank.record(300, 8);
  rank.spiller->note_late(number, 77777, 300, 1);
  rank.spiller->note_late(9999, 77777, 300, 1);  // of none that is open
  rank.record(300, 8);
  const Run run = rank.read();
  const report::RankFile& file = run.files.at(0);
  REQUIRE(calls_of(file) == numbers(0, 606));
  CHECK(file.events[number].exit_ticks == 77777);
  CHECK(file.events[number].algorithm == 300);
  CHECK(file.events[number].reason == 1);
  CHECK(file.events[number].arrival_ticks == 1000 + 10 * number);
}

TEST_CASE("calls that end late or are taken back late, from more threads than there is room for at once") {
  Rank rank;
  std::vector<std::uint64_t> open;
  for (int i = 0; i < 200; ++i) open.push_back(rank.begin());
  for (int i = 0; i < 20; ++i)
    rank.record(8, 8);  // the first stretches are lost: 200 events at once are more than the ring
  const std::uint64_t jumped = rank.begin();
  rank.record(100, 8);
  rank.spiller->note_late(jumped, 0, 0, 0);
  for (const std::uint64_t number : open) rank.spiller->note_late(number, 5000000, 0, 0);
  rank.record(100, 8);
  const Run run = rank.read();
  CHECK(run.problems.empty());
  for (const trace::Event& event : run.files.at(0).events) {
    if (event.call == trace::no_call) CHECK(event.arrival_ticks == 1000 + 10 * jumped);
    CHECK((event.exit_ticks == 0 || event.exit_ticks == 5000000 || event.exit_ticks == event.arrival_ticks + 5));
  }
  const auto calls = calls_of(run.files.at(0));
  CHECK(std::count(calls.begin(), calls.end(), trace::no_call) == 1);
}

TEST_CASE("a helper, and threads that record at once") {
  const Folder folder;
  Recorder recorder;
  std::string error;
  const std::string path = folder.path() + "/rank-00000.pap";
  REQUIRE(recorder.open(path, 1024, {}, error));
  recorder.header().ranks = 1;
  recorder.header().nodes = 1;
  recorder.start_spilling(path + "z", path + "z", plenty);
  constexpr std::uint64_t each = 20000;
  const auto work = [&](std::uint64_t which) {
    for (std::uint64_t i = 0; i < each; ++i) {
      const Recorder::Arrival arrival{10 * i + 1, which, i, 8, -1, Collective::allreduce, Form::blocking};
      recorder.finish(recorder.begin(arrival, 0), arrival, 10 * i + 6, 0, 0);
      if (i % 64 == 0) std::this_thread::yield();
    }
  };
  std::thread other(work, 2);
  work(1);
  other.join();
  recorder.close();
  CHECK(recorder.spiller()->file().state() == State::closed);
  const Run run = report::load_run(folder.path());
  REQUIRE(run.problems.empty());
  const report::RankFile& file = run.files.at(0);
  CHECK(file.events.size() + file.overwritten_events + file.skipped_events == 2 * each);
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  for (const trace::Event& event : file.events) {
    CHECK(event.arrival_ticks == 10 * event.call + 1);
    CHECK(seen.emplace(event.communicator, event.call).second);
  }
}

// ---- damaged files

// Rank 1 of three, and what it spilled.
std::vector<Record> small_run() {
  auto all = support::records(3);
  for (Record& record : all) {
    for (std::uint64_t call = 0; call < 40; ++call) {
      const double begin = 10000.0 * static_cast<double>(call) + record.header.rank * 100;
      record.add_call(Collective::allreduce, call, begin, begin + 2000);
    }
    record.finalize(500000);
  }
  return all;
}

Run load_with(const std::vector<Record>& all, const std::vector<std::uint8_t>& spilled) {
  Run run;
  for (const Record& record : all) {
    const std::string name = Record::file_name(record.header.rank);
    REQUIRE(report::add_record(run, name, report::MemorySource(record.bytes(true))));
    report::add_spilled(run, name + "z",
                        report::MemorySource(record.header.rank == 1 ? spilled : record.spilled(30, 10)));
  }
  report::finish_run(run);
  return run;
}

void render(const Run& run) {
  const auto analysis = report::report_on(run);
  REQUIRE_FALSE(report::to_text(analysis).empty());
  REQUIRE(nlohmann::json::accept(report::to_json(analysis)));
}

TEST_CASE("spilled calls are compared across ranks") {
  const auto all = small_run();
  for (const std::size_t in_block : {1, 10, 16}) {
    const Run run = load_with(all, all[1].spilled(32, in_block));
    CHECK(run.problems.empty());
    CHECK(report::report_on(run).compared_calls == 40);
  }
  // Fewer of rank 1.
  const Run run = load_with(all, all[1].spilled(10, 10));
  CHECK(report::report_on(run).compared_calls == 26);
  CHECK(support::has_note(report::report_on(run), "Dropped from the trace: 14 of 120 calls"));
}

TEST_CASE("a trace of a killed process that ends within a block lacks nothing that the ring has") {
  const auto all = small_run();
  auto bytes = all[1].spilled(30, 10, false);
  bytes.resize(bytes.size() - 1);
  Run run = load_with(all, bytes);  // 20 to 23 are in neither
  REQUIRE(run.problems.size() == 1);
  CHECK(run.problems[0].trouble == Trouble::cut_short);
  CHECK(run.problems[0].sentence.find("4 calls are missing") != std::string::npos);
  bytes = all[1].spilled(34, 30, false);
  bytes.resize(bytes.size() - 1);
  run = load_with(all, bytes);
  CHECK(run.problems.empty());
  CHECK(run.files[1].events.size() == 40);
}

TEST_CASE("spilled files cut anywhere") {
  const auto all = small_run();
  const auto whole = all[1].spilled(30, 10);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    const Run run = load_with(all, {whole.begin(), whole.begin() + static_cast<long>(length)});
    REQUIRE(run.problems.size() == 1);
    REQUIRE(run.problems[0].trouble == Trouble::cut_short);
    REQUIRE(run.problems[0].sentence.starts_with("rank-00001.papz is cut short after "));
    REQUIRE(run.files.size() == 3);
    REQUIRE(run.files[1].events.size() >= 16);
    if (length % 7 == 0) render(run);
  }
}

TEST_CASE("any byte of a spilled file changed") {
  const auto all = small_run();
  const auto whole = all[1].spilled(30, 10);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    CAPTURE(at);
    for (const std::uint8_t flip : {0x01, 0x80, 0xff}) {
      auto bytes = whole;
      bytes[at] ^= flip;
      const Run run = load_with(all, bytes);
      REQUIRE(run.problems.size() == 1);
      REQUIRE(run.problems[0].sentence.starts_with("rank-00001.papz "));
      REQUIRE(run.problems[0].sentence.back() == '.');
      REQUIRE(run.files[1].events.size() >= 16);
      if (at % 7 == 0) render(run);
    }
  }
}

TEST_CASE("spilled files that belong elsewhere") {
  const auto all = small_run();
  CHECK(load_with(all, all[2].spilled(30, 10)).problems.at(0).trouble == Trouble::other_run);
  auto later = all[1];
  later.header.begin_unix_ns += 1;
  CHECK(load_with(all, later.spilled(30, 10)).problems.at(0).trouble == Trouble::other_run);
  auto bytes = all[1].spilled(30, 10);
  bytes[offsetof(trace::spill::FileHeader, version)] = 3;
  CHECK(load_with(all, bytes).problems.at(0).trouble == Trouble::other_version);
  CHECK(load_with(all, std::vector<std::uint8_t>(500, 'x')).problems.at(0).trouble == Trouble::not_papaya);
}

}  // namespace
}  // namespace papaya
