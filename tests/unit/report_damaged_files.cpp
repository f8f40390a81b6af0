// Files that are cut, damaged, foreign or of another version: said so, left out, never a crash.
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

using report::Run;
using report::Trouble;
using support::Folder;
using support::Record;

std::vector<Record> small_run() {
  auto all = support::records(3);
  for (int rank = 0; rank < 3; ++rank) {
    auto& record = all[rank];
    record.header.alpha[0] = {8, 500, 2000};
    record.header.alpha[1] = {8192, 900, 4000};
    for (std::uint64_t call = 0; call < 20; ++call) {
      const double begin = 10000.0 * static_cast<double>(call);
      record.add_call(static_cast<Collective>(call % 17), call, begin + rank * 100, begin + 2000, 8, 0);
    }
    record.finalize(300000);
  }
  return all;
}

// Rank 1's file replaced by `bytes`: whatever they are, ranks 0 and 2 stay usable and both renderings work.
Run load_with(const std::vector<Record>& all, const std::vector<std::uint8_t>& bytes) {
  Run run;
  for (const Record& record : all) {
    const auto own = record.header.rank == 1 ? bytes : record.bytes(true);
    report::add_record(run, Record::file_name(record.header.rank), report::MemorySource(own));
  }
  report::finish_run(run);
  return run;
}

Trouble trouble_with(const std::vector<std::uint8_t>& bytes) {
  const Run run = load_with(small_run(), bytes);
  REQUIRE(run.problems.size() == 1);
  CHECK(run.problems[0].file == "rank-00001.pap");
  CHECK(run.problems[0].sentence.starts_with("rank-00001.pap "));
  CHECK(run.problems[0].sentence.back() == '.');
  CHECK(run.files.size() == 2);
  CHECK(run.missing_ranks == 1);
  return run.problems[0].trouble;
}

std::vector<std::uint8_t> with(void (*change)(trace::Header&)) {
  auto bytes = small_run()[1].bytes(true);
  trace::Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  change(header);
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

TEST_CASE("a good file is read whole, at either layout") {
  const auto all = small_run();
  const Run compact = load_with(all, all[1].bytes(true));
  const Run files = support::load(all);
  for (const Run* run : {&compact, &files}) {
    CHECK(run->problems.empty());
    CHECK(run->missing.empty());
    REQUIRE(run->files.size() == 3);
    CHECK(run->files[1].events.size() == 16);
    CHECK(run->files[1].overwritten_events == 4);
    CHECK(run->files[1].skipped_events == 0);
    CHECK(run->files[1].events.front().call == 4);
  }
}

TEST_CASE("each kind of damage is told apart") {
  CHECK(trouble_with({}) == Trouble::cut_short);
  CHECK(trouble_with({'P', 'A', 'P'}) == Trouble::cut_short);
  CHECK(trouble_with({'#', '!', '/', 'b', 'i', 'n'}) == Trouble::not_papaya);
  CHECK(trouble_with(std::vector<std::uint8_t>(200000, 0)) == Trouble::not_papaya);
  CHECK(trouble_with(std::vector<std::uint8_t>(200000, 'x')) == Trouble::not_papaya);
  CHECK(trouble_with(with([](auto& h) { h.version = 1; })) == Trouble::other_version);
  CHECK(trouble_with(with([](auto& h) { h.endian_mark = 0x04030201; })) == Trouble::other_version);
  CHECK(trouble_with(with([](auto& h) { h.endian_mark = 7; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.header_bytes += 8; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.event_bytes = 0; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.event_capacity = 0; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.event_capacity = 15; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.event_capacity = 1ull << 63; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.event_capacity *= 2; })) == Trouble::cut_short);
  CHECK(trouble_with(with([](auto& h) { h.events_offset = ~0ull; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.events_offset = 0; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.totals_offset = 1ull << 40; })) == Trouble::cut_short);
  CHECK(trouble_with(with([](auto& h) { h.communicator_capacity = ~0ull; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.algorithms_offset = 8; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.algorithm_count = 0; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.algorithm_count = ~0ull; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.algorithm_count = 1 << 16; })) == Trouble::cut_short);
  CHECK(trouble_with(with([](auto& h) { h.timed_count = trace::most_timed + 1; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.timed_count = 1, h.timed_offset = 1ull << 40; })) == Trouble::cut_short);
  CHECK(trouble_with(with([](auto& h) { h.timed_count = 1, h.timed_offset = 8; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.timed_count = 1, h.interval_capacity = 3; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.modules_offset = 0; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.frame_count = ~0ull; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.frame_count = trace::frame_capacity + 1; })) == Trouble::cut_short);
  CHECK(trouble_with(with([](auto& h) { h.call_sites_offset = 1ull << 40; })) == Trouble::cut_short);
  CHECK(trouble_with(with([](auto& h) { h.rank = -1; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.rank = h.ranks; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.node = 5; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.ranks = 0; })) == Trouble::not_papaya);
  CHECK(trouble_with(with([](auto& h) { h.ns_per_tick = 0; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.ns_per_tick = std::numeric_limits<double>::quiet_NaN(); })) ==
        Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.ending = 9; })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { std::memset(h.host, 'h', sizeof(h.host)); })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { std::memset(h.reason_names[31], 'r', 64); })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { std::memset(h.reason_ids[31], 'r', 32); })) == Trouble::damaged);
  CHECK(trouble_with(with([](auto& h) { h.ranks = 12; })) == Trouble::other_run);
  CHECK(trouble_with(with([](auto& h) { h.nodes = 2; })) == Trouble::other_run);
  CHECK(trouble_with(with([](auto& h) { h.begin_unix_ns += 1; })) == Trouble::other_run);
  CHECK(trouble_with(with([](auto& h) { h.rank = 0; })) == Trouble::other_run);
}

TEST_CASE("call sites that point nowhere are damage, events of no site there is are left out") {
  const auto with_site = [](auto&& change) {
    auto all = small_run();
    all[1].add_call_site({{"/bin/app", 0x10}, {"", 0x7f0000001234}});
    change(all[1]);
    return trouble_with(all[1].bytes(true));
  };
  CHECK(with_site([](Record& r) { r.call_sites[0].frames = 3; }) == Trouble::damaged);
  CHECK(with_site([](Record& r) { r.call_sites[0].frames = 0; }) == Trouble::damaged);
  CHECK(with_site([](Record& r) { r.call_sites[0].first_frame = ~0u; }) == Trouble::damaged);
  CHECK(with_site([](Record& r) { r.frames[0].module = 2; }) == Trouble::damaged);
  CHECK(with_site([](Record& r) { r.modules[0].build_id_bytes = 33; }) == Trouble::damaged);
  CHECK(with_site([](Record& r) { std::memset(r.modules[0].path, 'p', sizeof r.modules[0].path); }) ==
        Trouble::damaged);
  auto all = small_run();
  all[1].add_call_site({{"/bin/app", 0x10}, {"", 0x7f0000001234}});
  all[1].events[10].call_site = 1;
  all[1].events[11].call_site = 2;
  const Run run = load_with(all, all[1].bytes(true));
  CHECK(run.files[1].skipped_events == 1);
  REQUIRE(run.files[1].call_sites->size() == 1);
  CHECK((*run.files[1].call_sites)[0][0] == report::Frame{"/bin/app", 0x10, "ab00"});
  CHECK((*run.files[1].call_sites)[0][1] == report::Frame{"", 0x7f0000001234, ""});
}

TEST_CASE("texts become valid UTF-8 without control characters, whatever they are") {
  const std::string replaced = "\xef\xbf\xbd";
  const auto clean = [](const std::string& text) { return report::clean_text(text); };
  CHECK(clean(std::string("abc\0def", 7)) == "abc");
  CHECK(clean("a\tb\x7f\x1f") == "a b  ");
  // The first and the last of each length, and what borders on the surrogates.
  for (const char* valid : {"\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
                            "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    CHECK(clean(std::string("<") + valid + ">") == std::string("<") + valid + ">");
  // Overlong, surrogates, beyond the last character, no lead, cut: each byte by itself.
  for (const char* invalid :
       {"\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x80\x80\x80",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\x80", "\xff", "\xe2\x82", "\xf0\x9f\x98"}) {
    std::string expected = "<";
    for (const char* byte = invalid; *byte != '\0'; ++byte) expected += replaced;
    CHECK(clean(std::string("<") + invalid + ">") == expected + ">");
  }
  CHECK(clean("\xe2\x82") == replaced + replaced);
}

TEST_CASE("another version is named, with what to do") {
  const Run run = load_with(small_run(), with([](auto& h) { h.version = 1; }));
  CHECK(run.problems[0].sentence.find("format version 1") != std::string::npos);
  CHECK(run.problems[0].sentence.find("reads versions 3 and 4") != std::string::npos);
  CHECK(report::report_on(run).other_version);
}

TEST_CASE("a record of version 3 reads like one of version 4") {
  auto all = small_run();
  for (support::Record& record : all) {
    const std::uint32_t site = record.add_call_site({{"/bin/app", 0x100}});
    for (std::size_t i = 0; i < record.events.size(); ++i) {
      record.events[i].algorithm = i % 2 == 0 ? 0 : 1;
      record.events[i].reason = i % 2 == 0 ? 2 : 0;
      record.events[i].call_site = site;
      record.events[i].thread = 3;
    }
    std::strcpy(record.header.reason_names[4], "the communicator has made too few calls yet");
    record.algorithms[0].calls[index_of(Collective::allreduce)] = 10;
    record.algorithms[1].calls[index_of(Collective::allreduce)] = 10;
    record.algorithms[1].nonblocking[index_of(Collective::bcast)] = 5;
    record.totals.native_calls_by_reason[index_of(Collective::allreduce)][2] = 10;
  }
  const support::Folder today;
  const support::Folder old;
  today.write(all);
  for (const support::Record& record : all)
    old.write(support::Record::file_name(record.header.rank), record.bytes_of_version_3());
  const Run run = report::load_run(old.path());
  CHECK(run.problems.empty());
  REQUIRE(run.files.size() == all.size());
  const Run same = report::load_run(today.path());
  for (std::size_t f = 0; f < all.size(); ++f) {
    CHECK(run.files[f].algorithms->size() == 32);
    CHECK(report::algorithm_name(run.files[f], 1) == "flat");
    CHECK(report::algorithm_name(run.files[f], 2).empty());
    CHECK(std::string_view(run.files[f].texts->reason_ids[0]) == "none");
    CHECK(std::string_view(run.files[f].texts->reason_ids[1]).empty());
    CHECK(std::string_view(run.files[f].texts->reason_ids[4]) == "few_calls");
    CHECK(*run.files[f].call_sites == *same.files[f].call_sites);
    REQUIRE(run.files[f].events.size() == same.files[f].events.size());
    for (std::size_t e = 0; e < same.files[f].events.size(); ++e)
      CHECK(std::memcmp(&run.files[f].events[e], &same.files[f].events[e], sizeof(trace::Event)) == 0);
  }
  CHECK(report::to_json(report::report_on(run)) == report::to_json(report::report_on(same)));
  auto bytes = all[1].bytes_of_version_3();
  bytes.resize(7000);
  CHECK(trouble_with(bytes) == Trouble::cut_short);
  bytes = all[1].bytes_of_version_3();
  bytes.resize(bytes.size() - 1);
  CHECK(trouble_with(bytes) == Trouble::cut_short);
}

TEST_CASE("a record holds any number of algorithms") {
  auto all = small_run();
  for (std::size_t f = 0; f < all.size(); ++f) {
    auto& algorithms = all[f].algorithms;
    // Each rank has its own numbers.
    const std::size_t count = 1000 + f;
    algorithms.resize(count);
    for (std::size_t a = 2; a < count; ++a)
      std::snprintf(algorithms[a].name, sizeof algorithms[a].name, "algorithm_%zu", a - f);
    algorithms[300 + f].calls[index_of(Collective::allreduce)] = 20;
    for (trace::Event& event : all[f].events) event.algorithm = static_cast<std::uint32_t>(300 + f);
  }
  const Run run = support::load(all);
  CHECK(run.problems.empty());
  REQUIRE(run.files.size() == all.size());
  for (std::size_t f = 0; f < all.size(); ++f) {
    CHECK(run.files[f].skipped_events == 0);
    CHECK(run.files[f].algorithms->size() == 1000 + f);
    CHECK(report::algorithm_name(run.files[f], run.files[f].events.front().algorithm) == "algorithm_300");
  }
  const report::Report analysis = report::report_on(run);
  REQUIRE(analysis.algorithms.size() == 1);
  CHECK(analysis.algorithms[0].algorithm == "algorithm_300");
  CHECK(analysis.algorithms[0].calls == 60);
  // A name without an end, and a table cut in its last row.
  auto bytes = all[1].bytes(true);
  std::memset(bytes.data() + bytes.size() - sizeof(trace::Algorithm), 'a', trace::name_bytes);
  CHECK(trouble_with(bytes) == Trouble::damaged);
  bytes = all[1].bytes(true);
  bytes.pop_back();
  CHECK(trouble_with(bytes) == Trouble::cut_short);
}

TEST_CASE("spilled events of version 1 read like those of version 2") {
  auto all = small_run();
  const std::uint32_t site = all[1].add_call_site({{"/bin/app", 0x100}});
  for (std::size_t i = 0; i < all[1].events.size(); ++i) {
    all[1].events[i].algorithm = i % 2;
    all[1].events[i].reason = i % 2 == 0 ? 2 : 0;
    all[1].events[i].call_site = site;
  }
  const auto load_with_spilled = [&](const std::vector<std::uint8_t>& spilled) {
    Folder folder;
    folder.write(all);
    folder.write(Record::file_name(1) + "z", spilled);
    return report::load_run(folder.path());
  };
  const Run run = load_with_spilled(all[1].spilled_of_version_1(16, 10));
  const Run same = load_with_spilled(all[1].spilled(16, 10));
  CHECK(run.problems.empty());
  CHECK(run.files[1].skipped_events == 0);
  REQUIRE(run.files[1].events.size() == same.files[1].events.size());
  for (std::size_t e = 0; e < same.files[1].events.size(); ++e)
    CHECK(std::memcmp(&run.files[1].events[e], &same.files[1].events[e], sizeof(trace::Event)) == 0);
}

TEST_CASE("events that are torn or impossible are left out and counted") {
  auto all = small_run();
  auto& events = all[1].events;
  events[10].commit ^= 1;
  events[11].collective = collective_count;
  events[12].form = form_count;
  events[13].exit_ticks = events[13].arrival_ticks - 1;
  events[14].arrival_ticks = support::origin_ticks - 1;
  events[15].algorithm = static_cast<std::uint32_t>(all[1].algorithms.size());
  events[16].reason = trace::reason_capacity;
  const Run run = load_with(all, all[1].bytes(true));
  CHECK(run.files[1].events.size() == 9);
  CHECK(run.files[1].skipped_events == 7);
  const auto analysis = report::report_on(run);
  CHECK(support::has_note(analysis, "torn or damaged: 7 records of calls"));
  CHECK(support::has_note(analysis, "does not contain them: 7 calls"));
  CHECK(analysis.compared_calls == 9);
}

TEST_CASE("damaged tables of communicators") {
  auto all = small_run();
  all[1].communicators[0].rank = 3;
  CHECK(trouble_with(all[1].bytes(true)) == Trouble::damaged);
  all[1].communicators[0] = {};  // claimed, not yet filled when the job was killed
  CHECK(load_with(all, all[1].bytes(true)).problems.empty());
  all = small_run();
  std::memset(all[1].communicators[0].name, 'n', trace::name_bytes);
  CHECK(trouble_with(all[1].bytes(true)) == Trouble::damaged);
}

TEST_CASE("a folder with files of two runs and other things") {
  auto all = small_run();
  const Folder folder;
  folder.write(all);
  Record stray(7, 8);
  folder.write(Record::file_name(7), stray.bytes());
  folder.write("rank-00001.pap.swp", std::string("x"));
  folder.write("rank-.pap", std::string("x"));
  folder.write("notes", std::string("x"));
  const Run run = report::load_run(folder.path());
  REQUIRE(run.problems.size() == 1);
  CHECK(run.problems[0].trouble == Trouble::other_run);
  CHECK(run.problems[0].sentence.find("two runs are mixed") != std::string::npos);
  CHECK(run.ranks == 3);
  CHECK(run.files.size() == 3);
}

TEST_CASE("a renamed file is not taken for the rank in its name") {
  const auto all = small_run();
  const Folder folder;
  folder.write(all);
  folder.write(Record::file_name(1), all[2].bytes());
  const Run run = report::load_run(folder.path());
  REQUIRE(run.problems.size() == 1);
  CHECK(run.problems[0].sentence.find("rank 2") != std::string::npos);
  CHECK(report::to_text(run.missing) == "1");
  CHECK(run.files.size() == 2);
}

TEST_CASE("a huge number of ranks costs nothing") {
  Run run;
  const auto bytes = with([](auto& h) { h.ranks = std::numeric_limits<std::int32_t>::max(); });
  report::add_record(run, "rank-00001.pap", report::MemorySource(bytes));
  report::finish_run(run);
  CHECK(report::to_text(run.missing) == "0, 2-2147483646");
  CHECK_FALSE(report::to_text(report::report_on(run)).empty());
}

void render(const Run& run) {
  const auto analysis = report::report_on(run);
  REQUIRE_FALSE(report::to_text(analysis).empty());
  REQUIRE(nlohmann::json::accept(report::to_json(analysis)));
}

TEST_CASE("files cut anywhere") {
  const auto all = small_run();
  const auto whole = all[1].bytes();
  const Folder folder;
  folder.write(all);
  for (std::size_t length = 0; length < whole.size(); length += 997) {
    CAPTURE(length);
    folder.write(Record::file_name(1),
                 std::vector<std::uint8_t>(whole.begin(), whole.begin() + static_cast<long>(length)));
    const Run run = report::load_run(folder.path());
    REQUIRE(run.problems.size() == 1);
    REQUIRE(run.problems[0].trouble == Trouble::cut_short);
    REQUIRE(run.files.size() == 2);
    render(run);
  }
}

TEST_CASE("message times of sizes with one logarithm") {
  auto all = support::records(2);
  for (Record& record : all) {
    record.header.alpha[0] = {1ull << 62, 100, 0};
    record.header.alpha[1] = {(1ull << 62) + 1, 100, 0};
    record.add_call(Collective::allreduce, 0, 0, 10, 1ull << 63);
    record.finalize(100);
  }
  CHECK(std::isfinite(support::figures_of(support::analyse(all), "MPI_Allreduce").imbalance.cluster.worst_factor));
}

TEST_CASE("any byte of the header changed") {
  const auto all = small_run();
  const auto whole = all[1].bytes(true);
  for (std::size_t at = 0; at < sizeof(trace::Header); ++at) {
    CAPTURE(at);
    for (const std::uint8_t flip : {0x01, 0x80, 0xff}) {
      auto bytes = whole;
      bytes[at] ^= flip;
      const Run run = load_with(all, bytes);
      REQUIRE(run.files.size() >= 1);
      // Texts make up most of the header; rendering each of those changes would take long.
      if ((at < offsetof(trace::Header, host) || at % 61 == 0) && flip == 0xff) render(run);
    }
  }
}

}  // namespace
}  // namespace papaya
