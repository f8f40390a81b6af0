// What the page draws: bins, samples and the calls chosen, bounded and right.
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

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
