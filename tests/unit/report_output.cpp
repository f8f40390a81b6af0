// The text and the JSON.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/mpi_name.hpp"
#include "profiler/read/units.hpp"
#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

using nlohmann::json;
using support::Record;

// Large numbers and long names everywhere, on several nodes.
std::vector<Record> rich_run() {
  std::vector<Record> all;
  for (int rank = 0; rank < 16; ++rank) {
    all.emplace_back(rank, 16, rank / 4, 4);
    Record& record = all.back();
    record.header.clock[0] = {0, 1500, Record::ticks(0), 1, 0, 1500, 60000, 0, 0};
    record.header.clock[1] = {0, 1500, Record::ticks(1e12), 1, 0, 1500, 60000, 0, 0};
    const std::string command = "./a.out " + std::string(300, 'x') + " and a lot more of the command line to break";
    std::snprintf(record.header.command, sizeof(record.header.command), "%s", command.c_str());
    record.add_communicator(support::world_id, 16, rank, "MPI_COMM_WORLD");
    record.add_communicator(0xfedcba9876543210, 4, rank % 4, "");
    record.capacity = 128;
    std::uint64_t call = 0;
    for (std::size_t c = 0; c < collective_count; ++c) {
      const bool is_of_neighbours = static_cast<Collective>(c) >= Collective::neighbor_allgather;
      const Form waits = is_of_neighbours ? Form::neighbourhood : Form::blocking;
      for (const std::uint64_t bytes : {8ull, 100000ull, 10000000ull}) {
        const double begin = 1e9 * static_cast<double>(call);
        record.add_call(static_cast<Collective>(c), call++, begin + 123456.0 * (rank * 7 % 16), begin + 9e8, bytes, 0,
                        support::world_id, waits);
      }
      for (const Form form : {waits, Form::nonblocking, Form::persistent, Form::started}) {
        for (auto& size : record.totals.by_size[c][static_cast<std::size_t>(form)]) {
          size.calls += 123456789;
          size.bytes += 987654321987654;
          size.ticks += 12345678901234;
        }
      }
      record.algorithms[0].calls[c] = 123456789;
      record.totals.native_calls_by_reason[c][1] = 12345678;
    }
    record.add_call(Collective::barrier, 0, 1e11, 1e11 + 5000.0 + 100 * rank, 0, -1, 0xfedcba9876543210);
    record.finalize(2e11);
  }
  return all;
}

std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

TEST_CASE("report text fits 100 columns") {
  const auto text = report::to_text(support::analyse(rich_run()));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(columns(line) <= 100);
    CHECK((line.empty() || line.back() != ' '));
  }
  CHECK(text.find("16 on 4 nodes: node0 (ranks 0-3);") != std::string::npos);
  CHECK(text.find("MPI_Reduce_scatter_block_init") != std::string::npos);
  CHECK(text.find("within nodes") != std::string::npos);
  CHECK(text.find('\033') == std::string::npos);
}

TEST_CASE("report json has the promised fields") {
  auto all = rich_run();
  const json report = json::parse(report::to_json(support::analyse(all)));
  CHECK(report["program"] == "app");
  CHECK(report["mpi"] == "Open MPI 4.1.4");
  CHECK(report["ranks"] == 16);
  CHECK(report["nodes"] == 4);
  CHECK(report["verdict"].is_string());
  CHECK(report["clock_error_us"] == 1.5);
  bool found = false;
  for (const auto& collective : report["collectives"]) {
    CHECK(collective["calls"].is_number());
    CHECK(collective["bytes"].is_number());
    CHECK(collective["seconds"].is_number());
    if (collective["name"] != "MPI_Allreduce") continue;
    found = true;
    for (const auto& imbalance : {collective["imbalance"], collective["imbalance"]["node"]}) {
      for (const char* name : {"worst_us", "average_us", "worst_factor", "average_factor"}) {
        CHECK(imbalance[name].is_number());
      }
    }
  }
  CHECK(found);
  CHECK(report["late_ranks"][0]["rank"].is_number());
  CHECK(report["late_ranks"][0]["times_last"].is_number());
  for (const auto& row : report["algorithms"]) {
    for (const char* name : {"collective", "algorithm", "reason"}) CHECK(row[name].is_string());
    CHECK(row["calls"].is_number());
  }
}

TEST_CASE("report json is valid whatever the bytes of the texts") {
  auto all = support::records(1);
  std::memcpy(all[0].header.program, "\xff\xfe\"\\\n\x01 \xc3\xa4 \xe2\x82", 13);
  all[0].header.program[13] = '\0';
  const auto analysis = support::analyse(all);
  const json report = json::parse(report::to_json(analysis));
  CHECK(report["program"] == "\xef\xbf\xbd\xef\xbf\xbd\"\\   \xc3\xa4 \xef\xbf\xbd\xef\xbf\xbd");
  CHECK(report["clock_error_us"] == 0);
}

TEST_CASE("report files are written into the folder, and nothing else is left there") {
  auto all = support::records(2);
  for (int rank = 0; rank < 2; ++rank) {
    all[rank].add_call(Collective::allreduce, 0, rank * 1000, 2000);
    all[rank].finalize(3000);
  }
  const support::Folder folder;
  folder.write(all);
  folder.write("papaya.cfg", "PAPAYA_PROFILE=trace\nPAPAYA_ORDER=rank\nnot a setting\nPAPAYA_NEW=1\n");
  std::string error = "untouched";
  REQUIRE(report::write_reports(folder.path(), folder.path(), &error));
  CHECK(error == "untouched");
  const std::string text = folder.read("report.txt");
  CHECK(text.find("Rank 1 is late") != std::string::npos);
  CHECK(text.find("PAPAYA_PROFILE=trace PAPAYA_NEW=1") != std::string::npos);
  CHECK(text.find("PAPAYA_ORDER") == std::string::npos);
  const json report = json::parse(folder.read("report.json"));
  CHECK(report["settings"]["PAPAYA_ORDER"] == "rank");
  CHECK(report::write_reports(folder.path(), folder.path(), nullptr));
  CHECK(folder.read("report.txt") == text);
}

TEST_CASE("report files that cannot be written give one line") {
  std::string error;
  const support::Folder folder;
  CHECK_FALSE(report::write_reports(folder.path(), folder.path(), &error));
  CHECK(error.find("no record") != std::string::npos);
  CHECK_FALSE(report::write_reports(folder.path() + "/nowhere", folder.path() + "/nowhere", &error));
  CHECK(error.find('\n') == std::string::npos);
  CHECK_FALSE(report::write_reports(folder.path() + "/nowhere", folder.path() + "/nowhere", nullptr));
}

TEST_CASE("an algorithm whose results differed from MPI's is named first") {
  std::vector<Record> all = rich_run();
  trace::Header& header = all[3].header;
  all[3].algorithms.resize(3);
  std::snprintf(all[3].algorithms[2].name, sizeof all[3].algorithms[2].name, "arrival_tree");
  header.difference_count = 19;  // more than fit
  header.differences[0] = {
      support::world_id, 17, 5, 2, static_cast<std::uint8_t>(Collective::allreduce), 1, {}, {}, {}};
  std::memcpy(header.differences[0].ours, "123456789012345678901234", 24);  // without an end
  std::memcpy(header.differences[0].expected, "6", 2);
  header.differences[1] = header.differences[0];
  header.differences[1].collective = collective_count;  // damaged
  header.differences[2] = header.differences[0];
  header.differences[2].algorithm = 77;
  header.differences[3] = header.differences[0];
  header.differences[3].is_dropped = 0;
  header.further_differences[9] = header.differences[3];
  const report::Report analysis = support::analyse(all);
  REQUIRE(analysis.wrong_results.size() == 3);
  CHECK(
      analysis.wrong_results[0].sentence() ==
      "MPI_Allreduce by arrival_tree differed from MPI's own in call 17 on MPI_COMM_WORLD: element 5 of the result on "
      "rank 3 was 123456789012345678901234, not 6; later calls there went to MPI");
  CHECK(report::to_text(analysis).starts_with("PAPAYA_VERIFY: MPI_Allreduce by arrival_tree differed"));
  const auto row = json::parse(report::to_json(analysis))["wrong_results"][1];
  CHECK(row["dropped"] == false);
  CHECK(row["algorithm"] == "arrival_tree");
  CHECK(row["mpi_value"] == "6");
}

TEST_CASE("what was tried, how that went and when it changed") {
  std::vector<Record> all = rich_run();
  all[0].algorithms.resize(3);
  std::snprintf(all[0].algorithms[1].name, sizeof all[0].algorithms[1].name, "arrival_leader");
  std::snprintf(all[0].algorithms[2].name, sizeof all[0].algorithms[2].name, "arrival_tree");
  trace::TrialRow row{};
  row.communicator = support::world_id;
  row.collective = static_cast<std::uint8_t>(Collective::allreduce);
  row.size_class = 10;
  row.calls = 5000;
  row.spent_ns = 1'500'000;
  row.trials = 6;
  row.in_use = 1;
  row.tried_count = 3;
  row.tried[0] = {0, static_cast<std::uint32_t>(trace::TriedState::slower), 2400, 3, 0};
  row.tried[1] = {1, static_cast<std::uint32_t>(trace::TriedState::kept), 400, 18, 0};
  row.tried[2] = {2, static_cast<std::uint32_t>(trace::TriedState::cannot_serve), 0, 0, 0};
  row.changes = trace::trial_change_capacity + 1;
  const auto ticks = [&](double ns) { return all[0].header.init_ticks + Record::ticks(ns); };
  for (std::uint32_t n = 0; n < row.changes; ++n)
    row.change[n % trace::trial_change_capacity] = {ticks(1e6 * n), 100 * n, n % 2 == 0 ? 1u : 0u, n % 2};
  row.arrivals_changes = 2;
  row.arrivals[0] = {ticks(1e6), 32, -1, 5};
  row.arrivals[1] = {ticks(3e6), 2000, 3, 2};
  trace::TrialRow rare = row;
  rare.trials = 0;
  rare.collective = static_cast<std::uint8_t>(Collective::barrier);
  rare.size_class = 0;
  rare.calls = 77;
  rare.changes = 0;
  row.call_site = static_cast<std::uint16_t>(all[0].add_call_site({{"/bin/solver", 0x11f3}, {"/bin/solver", 0x20}}));
  all[0].trials = {rare, row};
  // Those that cannot be are left out.
  for (const auto damage :
       {+[](trace::TrialRow& one) { one.in_use = 3; },
        +[](trace::TrialRow& one) { one.trials = one.arrivals_changes = one.call_site = 0; },
        +[](trace::TrialRow& one) { one.call_site = 0xffff; },
        +[](trace::TrialRow& one) { one.arrivals[1].pattern = 6; },
        +[](trace::TrialRow& one) { one.collective = collective_count; },
        +[](trace::TrialRow& one) { one.size_class = 65; },
        +[](trace::TrialRow& one) { one.tried_count = trace::tried_capacity + 1; },
        +[](trace::TrialRow& one) { one.tried[1].algorithm = 3; },
        +[](trace::TrialRow& one) { one.tried[1].state = 4; }, +[](trace::TrialRow& one) { one.change[3].before = 3; }})
    damage(all[0].trials.emplace_back(row));
  const report::Report analysis = support::analyse(all);
  REQUIRE(analysis.trials.size() == 2);
  const report::TrialFigures& first = analysis.trials[0];
  CHECK(first.communicator == "MPI_COMM_WORLD");
  CHECK(first.tried_text() == "arrival_leader 400 ns, native 2.40 µs (dropped), arrival_tree cannot serve");
  report::TrialFigures close = first;
  close.algorithm = "native";
  close.tried[1].state = trace::TriedState::kept;
  CHECK(close.tried_text() ==
        "arrival_leader 400 ns, native 2.40 µs, arrival_tree cannot serve; the difference may be chance, so native "
        "stays");
  CHECK(first.change_text() == "arrival_leader instead of native from call 400 on, 4.50 ms after MPI_Init");
  CHECK(first.site_text() == "from solver+0x11f3 < solver+0x20");
  CHECK(analysis.trials[1].change_text().empty());
  CHECK(analysis.trials[1].site_text().empty());
  const std::string text = report::to_text(analysis);
  CHECK(support::contains(
      text, "MPI_Allreduce  MPI_COMM_WORLD  up to 1 KiB  5,000       6        5  1.50 ms  arrival_leader\n"));
  CHECK(support::contains(text, "MPI_Barrier    MPI_COMM_WORLD  -               77       0        0"));
  CHECK(first.arrivals_text() ==
        "arrivals persistent, rank 3 late from call 2,000 on, 3.50 ms after MPI_Init, before that random");
  const auto trials = json::parse(report::to_json(analysis))["trials"];
  CHECK(trials[0]["call_site"][0]["offset"] == "0x11f3");
  CHECK(trials[1]["call_site"].empty());
  CHECK(trials[0]["least_bytes"] == 513);
  CHECK(trials[0]["most_bytes"] == 1024);
  CHECK(trials[0]["tried"][1]["state"] == "slower");
  CHECK(trials[0]["tried"][2]["median_us"].is_null());
  CHECK(trials[0]["last_changes"].size() == trace::trial_change_capacity);
  CHECK(trials[0]["last_changes"][0]["after_calls"] == 100);
  CHECK(trials[1]["most_bytes"].is_null());
  CHECK(trials[0]["last_arrivals"].size() == 2);
  CHECK(trials[0]["last_arrivals"][0]["straggler"].is_null());
  CHECK(trials[0]["last_arrivals"][1]["pattern"] == "persistent");
  CHECK(trials[0]["last_arrivals"][1]["straggler"] == 3);
}

TEST_CASE("numbers for people") {
  CHECK(report::time_text(0) == "0 ns");
  CHECK(report::time_text(812) == "812 ns");
  CHECK(report::time_text(999.9) == "1.00 µs");
  CHECK(report::time_text(1.923e6) == "1.92 ms");
  CHECK(report::time_text(12.34e3) == "12.3 µs");
  CHECK(report::time_text(345.6e6) == "346 ms");
  CHECK(report::time_text(12.345e9) == "12.3 s");
  CHECK(report::time_text(312e9) == "5 min 12 s");
  CHECK(report::time_text(-1500) == "-1.50 µs");
  CHECK(report::share_text(0) == "0 %");
  CHECK(report::share_text(0.0001) == "less than 0.1 %");
  CHECK(report::share_text(0.034) == "3.4 %");
  CHECK(report::share_text(0.868) == "87 %");
  CHECK(report::count_text(7) == "7");
  CHECK(report::count_text(1234567) == "1,234,567");
  CHECK(mpi_name(Collective::reduce_scatter, Form::nonblocking) == "MPI_Ireduce_scatter");
}

}  // namespace
}  // namespace papaya
