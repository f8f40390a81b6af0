// A run that is read a little at a time gives the figures of one that is loaded whole.
#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "profiler/analysis/event_stream.hpp"
#include "profiler/analysis/imbalance.hpp"
#include "profiler/read/packed.hpp"
#include "profiler/report/report.hpp"
#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

using report::Extent;
using support::Record;

constexpr std::uint64_t row_id = 77;  // of ranks 0 and 1

// Calls of all ranks and of two of them, of several sizes, roots and threads, with torn events and functions between.
std::vector<Record> random_run(unsigned seed, std::uint64_t capacity, int calls) {
  std::mt19937 random(seed);
  const auto up_to = [&](unsigned most) { return static_cast<int>(random() % (most + 1)); };
  std::vector<Record> all = support::records(5);
  std::vector<double> left(all.size(), 1000);
  for (Record& one : all) {
    one.capacity = capacity;
    one.add_timed("MPI_Send", MpiKind::point_to_point, 5, 1e5);
    one.add_call_site({{"/bin/app", 0x10}});
    one.add_call_site({{"/bin/app", 0x20}, {"/bin/app", 0x30}});
  }
  for (int rank = 0; rank < 2; ++rank) all[rank].add_communicator(row_id, 2, rank, "row");
  std::uint64_t of_row = 0;
  for (int call = 0; call < calls; ++call) {
    const bool is_row = up_to(3) == 0;
    const std::size_t ranks = is_row ? 2 : all.size();
    const Collective collective = up_to(2) == 0 ? Collective::bcast : Collective::allreduce;
    const int root = collective == Collective::bcast ? up_to(static_cast<unsigned>(ranks) - 1) : -1;
    const std::uint64_t number = is_row ? of_row++ : static_cast<std::uint64_t>(call) - of_row;
    double last = 0;
    std::vector<double> arrivals(ranks);
    for (std::size_t r = 0; r < ranks; ++r) last = std::max(last, arrivals[r] = left[r] + 500 + up_to(20000));
    for (std::size_t r = 0; r < ranks; ++r) {
      // Without the root's arrival nobody leaves a broadcast, and it leaves at once.
      const bool is_early = collective == Collective::bcast && static_cast<int>(r) == root;
      left[r] = (is_early ? arrivals[r] : last) + 100 + up_to(3000);
      trace::Event& event = all[r].add_call(collective, number, arrivals[r], left[r], std::uint64_t{8} << up_to(12),
                                            root, is_row ? row_id : support::world_id);
      event.call_site = static_cast<std::uint32_t>(up_to(2));
      event.thread = static_cast<std::uint16_t>(is_row ? 1 : 0);
      all[r].add_interval(up_to(400), static_cast<std::uint32_t>(up_to(2)));
      if (up_to(200) == 0) event.collective = 255;  // damaged
    }
  }
  for (Record& one : all) one.finalize(left[0] + 1e6);
  return all;
}

TEST_CASE("a run that is streamed from its files gives the report of one that is loaded") {
  for (const auto& [capacity, calls] :
       {std::pair<std::uint64_t, int>{16384, 9000}, {16, 100}, {64, 40}, {1024, 3000}}) {
    const support::Folder folder;
    folder.write(random_run(static_cast<unsigned>(calls), capacity, calls));
    const std::string loaded = report::to_json(report::report_on(report::load_run(folder.path())));
    CAPTURE(capacity, calls);
    REQUIRE(loaded.find("\"compared_calls\": 0") == std::string::npos);
    for (const Extent extent : {Extent::streamed_all, Extent::streamed_rings}) {
      const report::Run run = report::load_run(folder.path(), {}, extent);
      CHECK(run.files.at(0).events.empty());
      CHECK(report::to_json(report::report_on(run)) == loaded);
    }
  }
}

// With a damaged block in it, and one that is missing.
TEST_CASE("a trace that is streamed gives the report of one that is loaded") {
  for (const bool is_damaged : {false, true}) {
    const support::Folder folder;
    std::vector<Record> all = random_run(1, 16, 600);
    folder.write(all);
    for (std::size_t r = 0; r < all.size(); ++r) {
      std::vector<std::uint8_t> spilled = all[r].spilled(all[r].events.size() - 20, 10);
      if (is_damaged && r % 2 == 0) spilled[spilled.size() / 2] ^= 1;
      folder.write(Record::file_name(static_cast<int>(r)) + "z", spilled);
    }
    const report::Run loaded = report::load_run(folder.path());
    const report::Run streamed = report::load_run(folder.path(), {}, Extent::streamed_all);
    CHECK(loaded.files.at(1).events.size() > 400);
    CHECK(streamed.files.at(1).events.empty());
    CHECK(loaded.problems.size() == streamed.problems.size());
    CHECK(loaded.problems.empty() != is_damaged);
    CHECK(report::to_json(report::report_on(streamed)) == report::to_json(report::report_on(loaded)));
  }
}

// Each event once, those of a rank in their order; and what is said of it is what its call's arrivals say.
TEST_CASE("events come with what the others' arrivals say of them") {
  const support::Folder folder;
  folder.write(random_run(5, 1024, 3000));
  const report::Run run = report::load_run(folder.path());
  const report::Clocks clocks(run);
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<double>> arrivals;  // by communicator and call
  for (const report::RankFile& file : run.files)
    for (const trace::Event& event : file.events)
      arrivals[{event.communicator, event.call}].push_back(clocks.of_file(0).ns(event.arrival_ticks));
  std::vector<std::size_t> given(run.files.size());
  std::size_t matched = 0;
  report::read_events(report::load_run(folder.path(), {}, Extent::streamed_all), clocks,
                      [&](std::size_t file, const trace::Event& event, const report::InCall& its) {
                        const trace::Event& same = run.files[file].events.at(given[file]++);
                        REQUIRE(std::memcmp(&same, &event, sizeof event) == 0);
                        const std::vector<double>& of_call = arrivals.at({event.communicator, event.call});
                        const std::size_t ranks = event.communicator == row_id ? 2 : run.files.size();
                        REQUIRE(its.is_matched == (of_call.size() == ranks));
                        if (!its.is_matched) return;
                        ++matched;
                        const double own_ns = clocks.of_file(file).ns(event.arrival_ticks);
                        REQUIRE(its.late_ns == own_ns - *std::min_element(of_call.begin(), of_call.end()));
                        if (its.is_last) REQUIRE(own_ns == *std::max_element(of_call.begin(), of_call.end()));
                      });
  for (std::size_t f = 0; f < given.size(); ++f) CHECK(given[f] == run.files[f].events.size());
  CHECK(matched > 2000);
}

TEST_CASE("events whose arrivals go back are read, too") {
  std::vector<Record> all = support::records(2);
  for (Record& one : all) {
    for (int call = 0; call < 8; ++call) one.add_call(Collective::barrier, call, 9000.0 - 1000 * call, 9100);
    one.finalize(20000);
  }
  CHECK(support::analyse(all).compared_calls == 8);
}

// What no rank will complete is given up before the end, and counted alike.
TEST_CASE("calls that one rank lacks do not pile up") {
  std::vector<Record> all = support::records(3);
  constexpr int calls = 150'000;
  for (Record& one : all) {
    one.capacity = 1 << 18;
    for (int call = 0; call < calls; ++call)
      if (one.header.rank != 2 || call % 1000 == 0)
        one.add_call(Collective::barrier, call, 1000.0 * call + 5, 1000.0 * call + 500);
    one.finalize(1000.0 * calls + 1000);
  }
  const report::Run run = support::load(all);
  const report::Analysis analysis = report::analyse(run);
  CHECK(analysis.compared_calls == calls / 1000);
  // Up to the last call of the rank that lacks them; to those after it it has not come.
  CHECK(analysis.record.unmatched_calls == calls - 1000 + 1 - calls / 1000);
}

TEST_CASE("a spread of many samples is that of all of them") {
  std::mt19937 random(3);
  std::lognormal_distribution<double> times(8, 2);
  for (const std::size_t count : {1u, 2u, 65536u, 65537u, 300000u}) {
    report::Samples samples;
    std::vector<double> values(count);
    double sum = 0;
    for (double& value : values) {
      value = times(random);
      sum += value;
      samples.add(value);
    }
    std::sort(values.begin(), values.end());
    const report::Spread spread = samples.spread();
    CAPTURE(count);
    CHECK(spread.samples == count);
    CHECK(spread.mean_ns == Approx(sum / static_cast<double>(count)));
    CHECK(spread.max_ns == values.back());
    CHECK(spread.p50_ns == Approx(values[(count * 50 + 99) / 100 - 1]).epsilon(0.001));
    CHECK(spread.p99_ns == Approx(values[(count * 99 + 99) / 100 - 1]).epsilon(0.001));
  }
  report::Samples small;  // below a nanosecond, and less than nothing
  for (int i = 0; i < 70000; ++i) small.add(i % 2 == 0 ? -5.0 : 0.25);
  CHECK(small.spread().p50_ns <= 0.25);
  CHECK(small.spread().max_ns == 0.25);
}

TEST_CASE("a packed row is the row") {
  trace::Totals totals{};
  totals.by_size[1][0][2].calls = 7;
  totals.native_nonblocking_by_reason[collective_count - 1][trace::reason_capacity - 1] = ~std::uint64_t{0};
  const trace::Totals same = report::Packed(totals).unpack();
  CHECK(std::memcmp(&same, &totals, sizeof totals) == 0);
}

}  // namespace
}  // namespace papaya
