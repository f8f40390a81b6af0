// What the page draws: bins, samples and the calls chosen, bounded and right.
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "profiler/report/pictures.hpp"
#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

using nlohmann::json;
using report::EvenSample;
using report::FactorFigures;
using report::Pictures;

struct Drawn {
  report::Run run;
  std::unique_ptr<Pictures> pictures;
  report::Report analysis;
  json data;
};

std::unique_ptr<Drawn> draw(const std::vector<support::Record>& records) {
  auto drawn = std::make_unique<Drawn>();
  drawn->run = support::load(records);
  drawn->pictures = std::make_unique<Pictures>(drawn->run);
  drawn->analysis =
      report::report_on(drawn->run, [&](const report::ComparedCall& call) { drawn->pictures->add(call); });
  drawn->data = json::parse(report::to_json(*drawn->pictures, drawn->analysis));
  return drawn;
}

// Call i at i ms, its last rank 1 by i us (the first call: by 1 us).
std::vector<support::Record> ascending(int ranks, int calls) {
  auto all = support::records(ranks);
  for (auto& record : all) {
    record.capacity = 1;
    while (record.capacity < static_cast<std::uint64_t>(calls)) record.capacity *= 2;
    const std::uint64_t site = record.add_call_site({{"/bin/app", 0x100}});
    for (int i = 0; i < calls; ++i) {
      const double late_ns = record.header.rank == 1 ? 1000.0 * std::max(i, 1) : 0;
      record.add_call(Collective::allreduce, static_cast<std::uint64_t>(i), 1e6 * i + late_ns, 1e6 * i + 999e3)
          .call_site = site;
    }
    record.finalize(1e6 * calls);
  }
  return all;
}

TEST_CASE("pictures: an even sample keeps every stride-th, and never more than twice its capacity") {
  EvenSample<int> sample(8);
  for (int i = 0; i < 1000; ++i) {
    if (sample.takes_next()) sample.add(i);
    CHECK(sample.items().size() < 16);
  }
  CHECK(sample.seen() == 1000);
  REQUIRE(sample.items().size() >= 8);
  for (std::size_t i = 0; i < sample.items().size(); ++i) CHECK(sample.items()[i] == static_cast<int>(i) * 128);
}

TEST_CASE("pictures: lateness by rank and bin") {
  const auto drawn = draw(ascending(3, 800));
  const report::HeatMap& map = drawn->pictures->heat_map();
  REQUIRE(map.bins() == report::HeatMap::most_bins);
  REQUIRE(map.rows() == 3);
  for (const std::size_t bin : {1u, 200u, 398u}) {
    CAPTURE(bin);
    CHECK(map.mean_ns(0, bin) == Approx(0).margin(1));
    // Two calls in each.
    CHECK(map.mean_ns(1, bin) == Approx(1000.0 * (2 * static_cast<double>(bin) + 0.5)).margin(1100));
    CHECK(map.worst_ns(1, bin) >= map.mean_ns(1, bin));
  }
  CHECK(map.top_ns() == Approx(799e3));
  CHECK(drawn->data["heat_map"]["ranks"] == json({0, 1, 2}));
  CHECK(drawn->data["heat_map"]["mean"].get<std::string>().size() == 3 * 400 / 3 * 4);
}

// Rank 1 comes to call 40 half a second after the others, which is as long as the calls before and after it together.
TEST_CASE("pictures: a rank that waits is inside its call in every bin, and who is waited for has caused it") {
  auto all = support::records(3);
  for (auto& record : all) {
    record.capacity = 128;
    for (int i = 0; i < 100; ++i) {
      const double begin_ns = 5e6 * i + (i > 40 ? 500e6 : 0);
      const double late_ns = i == 40 && record.header.rank == 1 ? 500e6 : 0;
      record.add_call(Collective::allreduce, static_cast<std::uint64_t>(i), begin_ns + late_ns,
                      i == 40 ? 5e6 * 40 + 501e6 : begin_ns + 1e3);
    }
    record.finalize(1e9);
  }
  const auto drawn = draw(all);
  const report::HeatMap& map = drawn->pictures->heat_map();
  REQUIRE(map.bins() == 100);
  const auto bin_of = [&](double ns) { return static_cast<std::size_t>((ns - map.begin_ns()) / map.bin_ns()); };
  double waiting_bins = 0;
  for (std::size_t bin = bin_of(230e6); bin < bin_of(690e6); ++bin) {
    CAPTURE(bin);
    CHECK(map.mean_ns(0, bin) < 0);  // no call comes together here
    CHECK(map.waiting(0, bin) == Approx(1).margin(0.01));
    CHECK(map.inside(2, bin) == Approx(1).margin(0.01));
    CHECK(map.inside(1, bin) == Approx(0).margin(0.01));
  }
  for (std::size_t bin = 0; bin < map.bins(); ++bin) waiting_bins += map.waiting(0, bin);
  CHECK(waiting_bins * map.bin_ns() == Approx(500e6).epsilon(0.01));
  CHECK(map.caused_ns(1, bin_of(700e6)) == Approx(1000e6));
  CHECK(map.most_caused_ns() == Approx(1000e6));
  CHECK(map.caused_ns(0, bin_of(700e6)) == Approx(0).margin(1));
  CHECK(drawn->data["heat_map"]["caused_top_us"].get<double>() == Approx(1e6));
  CHECK(drawn->data["heat_map"]["inside"].get<std::string>().size() == 3 * 100 / 3 * 4);
}

// Cells of the page's list, by place.
std::map<std::size_t, int> unpacked(const std::string& text) {
  const auto value = [](char c) {
    return static_cast<unsigned>(
        std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/").find(c));
  };
  std::vector<unsigned> bytes;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    unsigned word = 0;
    for (std::size_t k = 0; k < 4; ++k) word = word << 6 | (text[i + k] == '=' ? 0 : value(text[i + k]));
    for (std::size_t k = 0; k < 3 && text[i + k + 1] != '='; ++k) bytes.push_back(word >> (16 - 8 * k) & 0xff);
  }
  std::map<std::size_t, int> cells;
  std::size_t place = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (int shift = 0;; shift += 7) {
      place += static_cast<std::size_t>(bytes[i] & 0x7f) << shift;
      if (bytes[i++] < 0x80) break;
    }
    cells[place] = static_cast<int>(bytes.at(i));
  }
  return cells;
}

// Two call sites in turn: at one rank 1 is late, at the other rank 2, by twice as long.
TEST_CASE("pictures: what is lost at each call site, by rank and bin") {
  auto all = support::records(3);
  constexpr int calls = 100;
  for (auto& record : all) {
    record.capacity = 128;
    const std::uint32_t sites[] = {record.add_call_site({{"/bin/app", 0x100}}),
                                   record.add_call_site({{"/bin/app", 0x200}})};
    for (int i = 0; i < calls; ++i) {
      const double late_ns = record.header.rank == 1 + i % 2 ? 1e6 * (1 + i % 2) : 0;
      record.add_call(Collective::allreduce, static_cast<std::uint64_t>(i), 10e6 * i + late_ns, 10e6 * i + 5e6)
          .call_site = sites[i % 2];
    }
    record.finalize(10e6 * calls);
  }
  const auto drawn = draw(all);
  const json& losses = drawn->data["site_losses"];
  REQUIRE(losses.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CAPTURE(i);
    CHECK(losses[i]["call_site"] == i);  // most waiting first
    CHECK(losses[i]["is_whole"] == true);
    const auto cells = unpacked(losses[i]["cells"]);
    CHECK(cells.size() == calls / 2);
    for (const auto& [place, level] : cells) {
      CHECK(place / calls == 2 - i);
      CHECK(level == 255);
    }
    CHECK(losses[i]["top_us"].get<double>() == Approx(i == 0 ? 4000 : 2000));
  }
}

TEST_CASE("pictures: of too many cells of a call site the costliest stay, and its sums") {
  report::SiteLosses losses(400);
  const std::vector<std::uint32_t> files = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  double sum_ns = 0;
  for (std::size_t bin = 0; bin < 400; ++bin) {
    std::vector<double> caused_ns(files.size());
    for (std::size_t i = 0; i < files.size(); ++i) {
      caused_ns[i] = static_cast<double>(1 + i * 400 + bin);
      sum_ns += caused_ns[i];
    }
    report::ComparedCall call;
    call.files = files;
    call.caused_ns = caused_ns;
    losses.add(call, bin, 1);  // of so few, 1024
  }
  const auto cells = losses.cells(100);
  REQUIRE(cells.size() == 100);
  for (const auto& cell : cells) CHECK(cell.place >= 3900);
  CHECK(losses.cells(10'000).size() <= 2048);
  CHECK_FALSE(losses.is_whole());
  double lost_ns = 0;
  for (const double ns : losses.lost_ns()) lost_ns += ns;
  CHECK(lost_ns == Approx(sum_ns));
}

TEST_CASE("pictures: a call that never ended has the arrivals of those inside, and lasts to the end of the record") {
  auto all = support::records(4);
  for (auto& record : all) {
    record.add_call(Collective::barrier, 0, 1e6, 2e6);
    if (record.header.rank != 2) record.add_call(Collective::allreduce, 1, 10e6 + 1e6 * record.header.rank, -1);
    record.header.end_ticks = support::Record::ticks(50e6);
  }
  const auto drawn = draw(all);
  const json& unfinished = drawn->data["unfinished"];
  REQUIRE(unfinished.size() == 1);
  CHECK(unfinished[0]["begin_seconds"].get<double>() == Approx(0.01));
  CHECK(unfinished[0]["ranks"] == json({0, 1, 3}));
  REQUIRE(drawn->analysis.pending.size() == 1);
  CHECK(drawn->analysis.pending[0].arrivals.at(2).late_ns == Approx(3e6));
  const report::HeatMap& map = drawn->pictures->heat_map();
  CHECK(map.begin_ns() + map.bin_ns() * static_cast<double>(map.bins()) == Approx(50e6));
}

TEST_CASE("pictures: no more bins than calls, and none without") {
  CHECK(draw(ascending(2, 5))->pictures->heat_map().bins() == 5);
  const auto nothing = draw(support::records(2));
  CHECK(nothing->pictures->heat_map().mean_ns(0, 0) < 0);
  CHECK(nothing->data["groups"].empty());
}

TEST_CASE("pictures: evenly chosen calls and the worst, with their arrivals") {
  const auto drawn = draw(ascending(3, 800));
  const json& group = drawn->data["groups"].at(0);
  CHECK(group["calls"] == 800);
  CHECK(group["call_site"] == 0);
  const json& shown = group["shown"];
  CHECK(shown.size() <= Pictures::most_shown + Pictures::most_worst);
  CHECK(shown.size() >= Pictures::most_shown / 2);
  std::vector<int> worst;
  std::uint64_t previous = 0;
  for (const json& call : shown) {
    if (call["is_worst"].get<bool>()) worst.push_back(call["call"].get<int>());
    CHECK(call["call"].get<std::uint64_t>() >= previous);
    previous = call["call"].get<std::uint64_t>();
    CHECK(call["last"] == 1);
    CHECK(call["worst_us"].get<double>() == Approx(std::max<double>(1, call["call"].get<double>())));
    CHECK(call["algorithm"] == "native");
  }
  CHECK(worst == std::vector<int>{796, 797, 798, 799});
  const auto& calls = drawn->pictures->calls().begin()->second;
  CHECK(calls.worst.front().arrivals_us[1] == Approx(799));
  CHECK(calls.worst.front().waits_us[0] == Approx(799));
  CHECK(calls.worst.front().waits_us[1] == 0);
  CHECK(calls.worst.front().exits_us[2] == Approx(999));
}

TEST_CASE("pictures: calls of many ranks are fewer") {
  const auto drawn = draw(ascending(600, 100));
  std::size_t entries = 0;
  for (const json& group : drawn->data["groups"]) entries += group["shown"].size() * 600;
  CHECK(entries <= Pictures::most_entries);
  CHECK(entries >= 20 * 600);
}

TEST_CASE("pictures: distribution of imbalance factors") {
  CHECK(FactorFigures::bin_of(0) == 0);
  CHECK(FactorFigures::bin_of(std::nan("")) == 0);
  CHECK(FactorFigures::bin_of(0.17) == 0);
  CHECK(FactorFigures::bin_of(0.18) == 1);
  CHECK(FactorFigures::bin_of(1.01) == 4);
  CHECK(FactorFigures::bin_of(1e300) == FactorFigures::bins - 1);
  CHECK(FactorFigures::bin_of(INFINITY) == FactorFigures::bins - 1);
  const auto drawn = draw(ascending(2, 300));
  const json& figures = drawn->data["factors"].at(0);
  CHECK(figures["collective"] == "MPI_Allreduce");
  CHECK(figures["size"] == "small");
  for (const json& kind : figures["counts"]) {
    std::uint64_t calls = 0;
    for (const json& count : kind) calls += count.get<std::uint64_t>();
    CHECK(calls == 300);
  }
  CHECK(drawn->pictures->factors().begin()->second.points.items().size() == 300);
}

TEST_CASE("pictures: without a rank the calls of the others") {
  auto all = ascending(4, 20);
  all.erase(all.begin() + 2);
  const auto drawn = draw(all);
  CHECK(drawn->data["communicators"].at(0)["rows"] == json({0, 1, 2}));
  CHECK(drawn->data["heat_map"]["ranks"] == json({0, 1, 3}));
}

TEST_CASE("pictures: without call sites by collective") {
  auto all = ascending(2, 20);
  for (auto& record : all)
    for (std::size_t i = 0; i < record.events.size(); ++i) {
      record.events[i].call_site = 0;
      if (i % 2 == 1) record.events[i].collective = static_cast<std::uint8_t>(Collective::barrier);
    }
  const auto drawn = draw(all);
  REQUIRE(drawn->data["groups"].size() == 2);
  CHECK(drawn->data["groups"][0]["call_site"].is_null());
  CHECK(drawn->data["groups"][0]["name"] == "MPI_Barrier");
  CHECK(drawn->data["groups"][1]["calls"] == 10);
}

}  // namespace
}  // namespace papaya
