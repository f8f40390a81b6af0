// Weakly consistent collectives in the record and in the report, against numbers worked out by hand.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "profiler/analysis/weak.hpp"
#include "profiler/record/weak_recorder.hpp"
#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

using support::Record;

struct Call {
  double arrival_us;
  double exit_us;
  std::uint64_t oldest;
  double share = 1;
  double waited_us = 0;
  double inside_us = -1;  // all the time
  WeakRecorder::Place place = {};
  std::uint64_t ended_site = 0;
};

// One rank's calls of one collective of 800 bytes on MPI_COMM_WORLD, as the recorder writes them.
void write(const support::Folder& folder, const Record& record, const char* collective, int root,
           const std::vector<Call>& calls, std::uint64_t capacity = trace::weak::event_capacity) {
  WeakRecorder recorder;
  recorder.set_capacity(capacity);
  const WeakDescription description{nullptr, collective, "ssp_hypercube", "slack=2", 800, root};
  const auto* const one =
      recorder.add(folder.path() + "/" + Record::file_name(record.header.rank) + "w", record.header, description,
                   {support::world_id, true, record.header.ranks, record.header.rank, "MPI_COMM_WORLD"});
  REQUIRE(one != nullptr);
  std::uint64_t clock = 0;
  for (const Call& call : calls) {
    const std::uint64_t number = recorder.begin(*one, ++clock, Record::ticks(call.arrival_us * 1e3), call.place);
    if (call.exit_us < 0) continue;
    const double inside_us = call.inside_us < 0 ? call.exit_us - call.arrival_us : call.inside_us;
    recorder.finish(*one, number, Record::ticks(call.exit_us * 1e3), call.ended_site,
                    {.clock = clock,
                     .oldest = call.oldest,
                     .own = clock,
                     .updated_bytes = 800,
                     .inside_ns = static_cast<std::uint64_t>(inside_us * 1e3),
                     .waited_ns = static_cast<std::uint64_t>(call.waited_us * 1e3),
                     .share = call.share,
                     .ranks = 2});
  }
}

// Two ranks: 0 is late at the one MPI_Allreduce by 5 us, 1 at every weak call by 20 us and more.
std::vector<Record> two_ranks() {
  auto all = support::records(2);
  all[0].add_call(Collective::allreduce, 0, 205e3, 206e3);
  all[1].add_call(Collective::allreduce, 0, 200e3, 206e3);
  for (Record& record : all) record.finalize(300e3);
  return all;
}

// With work of 10 us and 30 us between calls, of which rank 0 once waits for 7 us.
const std::vector<Call> fast{{0, 1, 0, 0.5}, {11, 12, 1}, {22, 30, 1, 1, 7}};
const std::vector<Call> slow{{20, 21, 1}, {51, 52, 2}, {82, 83, 3}};

TEST_CASE("weak records: who is late at a weak call is blamed for nothing, and what that saved is exact") {
  const support::Folder folder;
  const std::vector<Record> records = two_ranks();
  folder.write(records);
  const report::Report without = report::report_on(report::load_run(folder.path()));
  CHECK(without.weak.empty());
  CHECK(report::to_text(without).find("Weakly consistent") == std::string::npos);
  write(folder, records[0], "ssp_allreduce", -1, fast);
  write(folder, records[1], "ssp_allreduce", -1, slow);
  const report::Report with = report::report_on(report::load_run(folder.path()));

  CHECK(with.verdict == without.verdict);
  CHECK(with.notes == without.notes);
  CHECK(with.compared_calls == 1);
  CHECK(with.waiting_ns == Approx(5000));
  CHECK(with.waiting_share == without.waiting_share);
  CHECK(support::rank_of(with, 0).times_last == 1);
  CHECK(support::rank_of(with, 1).times_last == 0);
  CHECK(support::rank_of(with, 1).caused_ns == 0);
  CHECK(with.pending.empty());

  REQUIRE(with.weak.size() == 1);
  const report::WeakFigures& weak = with.weak[0];
  CHECK(weak.collective == "ssp_allreduce");
  CHECK(weak.algorithm == "ssp_hypercube");
  CHECK(weak.parameters == "slack=2");
  CHECK(weak.sums.calls == 6);
  CHECK(weak.sums.bytes == 4800);
  CHECK(weak.sums.inside_ns == Approx(13000));
  CHECK(weak.sums.waited_ns == Approx(7000));
  CHECK(weak.sums.aged_calls == 5);
  CHECK(weak.sums.staleness == Approx(0.6));
  CHECK(weak.sums.most_staleness == 2);
  CHECK(weak.sums.share == Approx(5.5 / 6));
  // In an MPI_Allreduce rank 0 would have waited 20 us each time, though it was up to 60 us ahead as it was.
  CHECK(weak.sums.compared == 3);
  CHECK(weak.sums.consistent_waiting_ns == Approx(60000));
  CHECK(weak.sums.saved_ns() == Approx(53000));

  const auto json = nlohmann::json::parse(report::to_json(with))["weak_collectives"];
  REQUIRE(json.size() == 1);
  CHECK(json[0]["staleness"] == Approx(0.6));
  CHECK(json[0]["saved_seconds"] == Approx(53e-6));
  const std::string text = report::to_text(with);
  CHECK(text.find("ssp_allreduce  ssp_hypercube      6") != std::string::npos);
}

TEST_CASE("weak records: a broadcast's ranks wait for the root alone, and a rank's own work is no waiting") {
  const support::Folder folder;
  const std::vector<Record> records = two_ranks();
  folder.write(records);
  SECTION("broadcast") {
    write(folder, records[0], "threshold_bcast", 0, fast);
    write(folder, records[1], "threshold_bcast", 0, slow);
    const auto weak = report::report_on(report::load_run(folder.path())).weak;
    CHECK(weak.at(0).sums.consistent_waiting_ns == 0);
    CHECK(weak.at(0).sums.saved_ns() == Approx(-7000));
  }
  SECTION("split phase") {
    // Rank 0 does something for 15 of the 20 us by which the other is late.
    write(folder, records[0], "ssp_allreduce", -1, {{0, 16, 1, 1, 0, 1}});
    write(folder, records[1], "ssp_allreduce", -1, {{20, 21, 1}});
    CHECK(report::report_on(report::load_run(folder.path())).weak.at(0).sums.consistent_waiting_ns == Approx(5000));
  }
  SECTION("a call that one rank never left, and those after it") {
    write(folder, records[0], "ssp_allreduce", -1, {{0, 1, 1}, {11, -1, 0}});
    write(folder, records[1], "ssp_allreduce", -1, slow);
    const auto weak = report::report_on(report::load_run(folder.path())).weak;
    CHECK(weak.at(0).sums.calls == 4);
    CHECK(weak.at(0).sums.compared == 1);
  }
  SECTION("a rank without a record") {
    write(folder, records[0], "ssp_allreduce", -1, fast);
    const auto weak = report::report_on(report::load_run(folder.path())).weak;
    CHECK(weak.at(0).sums.calls == 3);
    CHECK(weak.at(0).sums.compared == 0);
  }
}

TEST_CASE("weak records: the place that ranks call from, and whom they would have waited for there") {
  const support::Folder folder;
  std::vector<Record> records = two_ranks();
  // The same places have other numbers in each rank's record.
  const auto add_phase = [](Record& record, const char* name) {
    std::snprintf(record.header.phase_names[record.header.phase_count++], trace::name_bytes, "%s", name);
  };
  for (Record& record : records) record.header.phase_count = std::max<std::uint64_t>(record.header.phase_count, 1);
  const auto of_1 = records[1].add_call_site({{"app", 0x20}});
  const auto train = records[0].add_call_site({{"app", 0x10}});
  const auto wait = records[0].add_call_site({{"app", 0x30}});
  const auto train_1 = records[1].add_call_site({{"app", 0x10}});
  const auto wait_1 = records[1].add_call_site({{"app", 0x30}});
  add_phase(records[0], "training");
  add_phase(records[1], "other");
  add_phase(records[1], "training");
  folder.write(records);
  // Two calls at one place, where rank 1 is late; one started at another, which rank 0 waits for at a third.
  write(folder, records[0], "ssp_allreduce", -1,
        {{0, 1, 0, 0.5, 0, -1, {train, 1}}, {11, 12, 1, 1, 0, -1, {train, 1}}, {40, 45, 3, 1, 2, 3, {train, 0}, wait}});
  write(folder, records[1], "ssp_allreduce", -1,
        {{20, 21, 1, 1, 0, -1, {train_1, 2}},
         {51, 52, 1, 1, 0, -1, {train_1, 2}},
         {62, 63, 3, 1, 0, -1, {of_1, 0}, wait_1}});
  report::Report report = report::report_on(report::load_run(folder.path()));
  const report::WeakFigures& weak = report.weak.at(0);
  REQUIRE(weak.sites.size() == 3);
  const auto at = [&](std::uint64_t offset, bool ended) -> const report::WeakSite& {
    return *std::find_if(weak.sites.begin(), weak.sites.end(), [&](const report::WeakSite& site) {
      return site.frames.at(0).offset == offset && site.ended.empty() != ended;
    });
  };
  const report::WeakSite& training = at(0x10, false);
  CHECK(training.sums.calls == 4);
  CHECK(training.sums.inside_ns == Approx(4000));
  CHECK(training.sums.staleness == Approx(2. / 3));
  CHECK(training.sums.most_staleness == 1);
  CHECK(training.sums.share == Approx(3.5 / 4));
  CHECK(training.sums.saved_ns() == Approx(40000));
  REQUIRE(training.awaited.size() == 1);
  CHECK(training.awaited[0].rank == 1);
  CHECK(training.awaited[0].waiting_ns == Approx(40000));
  const report::WeakSite& split = at(0x10, true);
  CHECK(split.ended.at(0).offset == 0x30);
  CHECK((split.sums.calls == 1 && at(0x20, true).sums.calls == 1));
  CHECK(split.sums.waited_ns == Approx(2000));
  CHECK(report::to_text(report).find("rank 1, 100 %\n    app+0x10\n") != std::string::npos);
  CHECK(report::to_text(report).find("app+0x10; waited for at app+0x30\n") != std::string::npos);

  REQUIRE(weak.phases.size() == 2);
  CHECK((weak.phases[0].name == "" && weak.phases[0].sums.calls == 2));
  CHECK((weak.phases[1].name == "training" && weak.phases[1].sums.calls == 4));
  REQUIRE(weak.ranks.size() == 2);
  CHECK(weak.ranks[0].sums.waited_ns == Approx(2000));
  CHECK(weak.ranks[0].caused_ns == Approx(18000));
  CHECK(weak.ranks[1].caused_ns == Approx(40000));
  CHECK(weak.sums.consistent_waiting_ns == Approx(58000));
  REQUIRE(weak.ages.size() == 2);
  CHECK((weak.ages[0].calls == 3 && weak.ages[1].calls == 2));
  const auto json = nlohmann::json::parse(report::to_json(report))["weak_collectives"][0];
  CHECK(json["call_sites"].size() == 3);
  CHECK(json["phases"][1]["name"] == "training");
  CHECK(json["ranks"][1]["caused_waiting_seconds"] == Approx(weak.ranks[1].caused_ns * 1e-9));
  CHECK(json["ages"][1]["calls"] == 2);
}

TEST_CASE("weak records: ages far apart are told in ranges") {
  const support::Folder folder;
  std::vector<Record> records = support::records(1);
  records[0].finalize(1e9);
  folder.write(records);
  std::vector<Call> calls;
  for (std::size_t i = 1; i <= 70; ++i) calls.push_back({static_cast<double>(i), static_cast<double>(i), 1});
  write(folder, records[0], "ssp_allreduce", -1, calls);
  const auto ages = report::report_on(report::load_run(folder.path())).weak.at(0).ages;
  REQUIRE(ages.size() == 19);
  CHECK((ages[15].from == 15 && ages[15].to == 15 && ages[15].calls == 1));
  CHECK((ages[16].from == 16 && ages[16].to == 31 && ages[16].calls == 16));
  CHECK((ages[18].from == 64 && ages[18].to == 127 && ages[18].calls == 6));
}

TEST_CASE("weak records: sums cover the whole run, the ring its end") {
  const support::Folder folder;
  std::vector<Record> records = support::records(1);
  records[0].finalize(1e9);
  folder.write(records);
  constexpr std::size_t calls = trace::weak::event_capacity + 1000;
  std::vector<Call> all;
  for (std::size_t i = 0; i < calls; ++i)
    all.push_back({static_cast<double>(i), static_cast<double>(i) + 0.5, i == 0 ? 0 : i});
  write(folder, records[0], "ssp_allreduce", -1, all);
  const report::Run run = report::load_run(folder.path());
  CHECK(run.files[0].weak.begun == calls);
  REQUIRE(run.files[0].weak.events.size() == trace::weak::event_capacity);
  CHECK(run.files[0].weak.events.front().clock == 1001);
  CHECK(run.files[0].weak.events.back().clock == calls);
  const report::Report report = report::report_on(run);
  CHECK(report.verdict.find("only weakly consistent ones") != std::string::npos);
  CHECK(support::has_note(report, "the last 32,768 of 33,768 calls"));
  CHECK(support::has_note(report, "PAPAYA_PROFILE=trace keeps more"));
  const auto& weak = report.weak;
  CHECK(weak.at(0).sums.calls == calls);
  CHECK(weak.at(0).sums.staleness == Approx(1));
  // The first of them may come after any drift.
  CHECK(weak.at(0).sums.compared == trace::weak::event_capacity - 1);
}

TEST_CASE("weak records: a larger ring keeps more") {
  const support::Folder folder;
  std::vector<Record> records = support::records(1);
  records[0].finalize(1e9);
  folder.write(records);
  const std::vector<Call> calls(trace::weak::event_capacity + 1, Call{1, 2, 0});
  write(folder, records[0], "ssp_allreduce", -1, calls, 2 * trace::weak::event_capacity);
  const report::Run run = report::load_run(folder.path());
  CHECK(run.problems.empty());
  CHECK(run.files[0].weak.events.size() == calls.size());
  CHECK_FALSE(support::has_note(report::report_on(run), "weakly consistent"));
}

TEST_CASE("weak records: where there is no file there are no records") {
  const std::vector<Record> records = two_ranks();
  WeakRecorder recorder;
  for (int i = 0; i < 2; ++i)
    CHECK(recorder.add("/nonexistent/rank-00000.papw", records[0].header,
                       {nullptr, "ssp_allreduce", "ssp_hypercube", "", 8, -1},
                       {support::world_id, true, 2, 0, ""}) == nullptr);
}

TEST_CASE("weak records: damaged ones, and those of another run, are left out with a sentence") {
  const support::Folder folder;
  const std::vector<Record> records = two_ranks();
  folder.write(records);
  write(folder, records[0], "ssp_allreduce", -1, fast);
  const std::string name = Record::file_name(0) + "w";
  const std::vector<std::uint8_t> good = folder.bytes_of(name);
  const auto problem_of = [&](const std::vector<std::uint8_t>& bytes) {
    folder.write(name, bytes);
    const report::Run run = report::load_run(folder.path());
    CHECK(run.files.size() == 2);
    CHECK(run.files[0].weak.rows.empty());
    REQUIRE(run.problems.size() == 1);
    return run.problems[0].sentence;
  };
  for (const std::size_t bytes : {0u, 50u, 5000u})
    CHECK(problem_of({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes)}).find("cut short") !=
          std::string::npos);
  const auto with_byte = [&](std::size_t at, std::uint8_t value) {
    std::vector<std::uint8_t> bytes = good;
    bytes[at] = value;
    return bytes;
  };
  CHECK(problem_of(with_byte(0, 'x')).find("not a record") != std::string::npos);
  // Places that the rank's record does not have: such calls are left out, like torn ones.
  const auto event_with = [&](std::size_t at, std::uint8_t value) {
    folder.write(name, with_byte(trace::weak::events_offset + at, value));
    const report::Run run = report::load_run(folder.path());
    CHECK(run.problems.empty());
    CHECK(report::report_on(run).weak.at(0).sums.calls == 3);
    return run.files[0].weak.events.size();
  };
  CHECK(event_with(offsetof(trace::WeakEvent, call_site), 1) == 2);
  CHECK(event_with(offsetof(trace::WeakEvent, ended_site) + 3, 0x80) == 2);
  CHECK(event_with(offsetof(trace::WeakEvent, phase), 77) == 2);
  CHECK(event_with(offsetof(trace::WeakEvent, oldest) + 7, 0x80) == 3);
  CHECK(event_with(offsetof(trace::WeakEvent, clock) + 7, 0x80) == 3);
  CHECK(problem_of(with_byte(8, 99)).find("format version") != std::string::npos);
  CHECK(problem_of(with_byte(offsetof(trace::WeakHeader, begin_ticks), 1)).find("another run") != std::string::npos);
  CHECK(problem_of(with_byte(offsetof(trace::WeakHeader, row_count) + 7, 1)).find("damaged") != std::string::npos);
  CHECK(problem_of(with_byte(trace::weak::rows_offset + offsetof(trace::WeakRow, rank), 7)).find("damaged") !=
        std::string::npos);
}

}  // namespace
}  // namespace papaya
