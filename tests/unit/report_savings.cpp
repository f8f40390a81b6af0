// What better algorithms would bring, from synthetic arrivals with known answers.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "algorithms/algorithm.hpp"
#include "profiler/analysis/savings.hpp"
#include "profiler/report/report.hpp"
#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

using namespace papaya;
using namespace papaya::support;

namespace {

constexpr double latency_ns = 500;
constexpr double copy_ns = 2000;  // of 64 KiB
constexpr double net_latency_ns = 20'000;
constexpr double net_ns = 100'000;  // of 64 KiB
constexpr std::uint64_t large = 65536;

std::vector<Record> with_alpha(std::vector<Record> records) {
  for (Record& record : records) {
    record.header.cores = 4;
    record.header.node_ranks = 1;
  }
  records[0].header.alpha[0] = {8, static_cast<std::uint64_t>(latency_ns), static_cast<std::uint64_t>(net_latency_ns)};
  records[0].header.alpha[1] = {large, static_cast<std::uint64_t>(latency_ns + 2 * copy_ns),
                                static_cast<std::uint64_t>(net_ns)};
  return records;
}

std::vector<Record> one_node(int ranks) {
  return with_alpha(records(ranks));
}

std::vector<Record> nodes_of_one_rank(int nodes) {
  std::vector<Record> all;
  for (int rank = 0; rank < nodes; ++rank) {
    all.emplace_back(rank, nodes, rank, nodes);
    all.back().add_communicator(world_id, nodes, rank, "MPI_COMM_WORLD");
    all.back().header.clock[0] = {0, 1, Record::ticks(0), 1};
  }
  return with_alpha(all);
}

void finalize(std::vector<Record>& records, double end_ns) {
  for (Record& record : records) record.finalize(end_ns);
}

void add_calls(std::vector<Record>& records, Collective collective, std::uint64_t call,
               const std::vector<double>& arrivals, const std::vector<double>& exits, std::uint64_t bytes = 8,
               int root = -1) {
  for (std::size_t i = 0; i < records.size(); ++i)
    records[i].add_call(collective, call, arrivals[i], exits[i], bytes, root);
}

// What the modelled algorithm leaves of the recorded exits, summed over ranks.
double ranks_saved(const report::Analysis& analysis, const std::string& algorithm) {
  for (const auto& candidate : analysis.savings.candidates)
    if (candidate.algorithm == algorithm) return candidate.saving.ranks_ns;
  FAIL("no candidate " << algorithm);
  return 0;
}

}  // namespace

TEST_CASE("savings: the next step is no algorithm that serves the collective already") {
  for (const bool is_in_use : {false, true}) {
    auto all = one_node(2);
    for (std::uint64_t call = 0; call < 20; ++call) {
      const double begin = 10'000.0 * static_cast<double>(call);
      add_calls(all, Collective::allreduce, call, {begin, begin}, {begin + 9000, begin + 9000});
    }
    for (Record& record : all) {
      record.add_call_site({{"/bin/app", 0x10}});
      for (trace::Event& event : record.events) event.call_site = 1;
      std::strcpy(record.algorithms[1].name, "arrival_leader");
      record.algorithms[1].calls[index_of(Collective::allreduce)] = is_in_use ? 100 : 0;
    }
    finalize(all, 200'000);
    const std::vector<std::string> next = analyse(all).next;
    CAPTURE(is_in_use);
    CHECK(std::any_of(next.begin(), next.end(), [](const std::string& step) {
            return contains(step, "Try PAPAYA_ALLREDUCE=arrival_leader");
          }) == !is_in_use);
  }
}

TEST_CASE("savings: without excess, and by an algorithm, of one allreduce") {
  auto all = one_node(2);
  add_calls(all, Collective::allreduce, 0, {0, 10'000}, {15'000, 16'000});
  finalize(all, 100'000);
  const report::Savings savings = analyse(all).savings;
  CHECK(savings.calls == 1);
  CHECK(savings.open_calls == 1);
  CHECK(savings.no_excess.ranks_ns == Approx(5000 + 6000));
  // Both ranks end together, so the run is shorter by what the slower one saves, the rank that left first.
  CHECK(savings.no_excess.run_ns == Approx(5000));
  REQUIRE(savings.best() != nullptr);
  CHECK(savings.best()->algorithm == "arrival_leader");
  CHECK(savings.best()->saving.ranks_ns == Approx(11'000 - 2 * latency_ns));
  CHECK(savings.best()->saving.run_ns == Approx(5000 - latency_ns));
  CHECK(savings.span_ns == Approx(100'000));
}

TEST_CASE(
    "savings: what is saved before a call moves its arrivals, and waiting swallows what the last rank does "
    "not save") {
  auto all = one_node(2);
  // Rank 1 is late at both calls and loses nothing in the first one: the second begins no earlier.
  add_calls(all, Collective::barrier, 0, {0, 10'000}, {14'000, 10'000}, 0);
  add_calls(all, Collective::barrier, 1, {15'000, 20'000}, {20'000, 20'000}, 0);
  finalize(all, 30'000);
  report::Savings savings = analyse(all).savings;
  CHECK(savings.no_excess.ranks_ns == Approx(4000));
  CHECK(savings.no_excess.run_ns == Approx(0).margin(1));
  // The other way round the run gains it whole.
  all = one_node(2);
  add_calls(all, Collective::barrier, 0, {0, 10'000}, {10'000, 14'000}, 0);
  add_calls(all, Collective::barrier, 1, {15'000, 24'000}, {24'000, 24'000}, 0);
  finalize(all, 30'000);
  savings = analyse(all).savings;
  CHECK(savings.no_excess.ranks_ns == Approx(4000));
  CHECK(savings.no_excess.run_ns == Approx(4000));
}

TEST_CASE("savings: models on one node") {
  const std::vector<double> arrivals = {0, 1000, 50'000};
  const std::vector<double> exits = {200'000, 200'000, 200'000};
  const auto saved = [&](Collective collective, const std::string& algorithm, int root = -1) {
    auto all = one_node(3);
    add_calls(all, collective, 0, arrivals, exits, collective == Collective::barrier ? 0 : large, root);
    finalize(all, 300'000);
    return ranks_saved(analyse(all), algorithm);
  };
  // The last operand is copied in and combined by three, then all copy the result out.
  const double reduced = 50'000 + copy_ns + copy_ns / 3;
  CHECK(saved(Collective::allreduce, "arrival_leader") == Approx(3 * (200'000 - reduced - latency_ns - copy_ns)));
  CHECK(saved(Collective::reduce, "arrival_leader", 1) ==
        Approx(600'000 - (0 + copy_ns) - (50'000 + copy_ns) - (reduced + latency_ns + copy_ns)));
  CHECK(saved(Collective::bcast, "arrival_bcast", 0) ==
        Approx(600'000 - copy_ns - (latency_ns + 2 * copy_ns) - (50'000 + copy_ns)));
  CHECK(saved(Collective::gather, "arrival_gather", 1) ==
        Approx(600'000 - copy_ns - (50'000 + copy_ns) - (50'000 + 2 * copy_ns + latency_ns)));
  CHECK(saved(Collective::scatter, "arrival_scatter", 0) ==
        Approx(600'000 - 2 * copy_ns - (std::max(1000.0, copy_ns + latency_ns) + copy_ns) - (50'000 + copy_ns)));
  CHECK(saved(Collective::barrier, "arrival_barrier") == Approx(3 * (200'000 - 50'000 - latency_ns)));
  // The last block is one copy in and one out; the last rank has two to take out.
  CHECK(saved(Collective::allgather, "arrival_allgather") ==
        Approx(600'000 - 2 * (50'000 + 2 * copy_ns + latency_ns) - (50'000 + 3 * copy_ns)));
  CHECK(saved(Collective::alltoall, "arrival_alltoall") ==
        Approx(600'000 - 2 * (50'000 + 3 * copy_ns + latency_ns) - (50'000 + 4 * copy_ns)));
  CHECK(saved(Collective::reduce_scatter_block, "arrival_blocks") ==
        Approx(600'000 - 2 * (50'000 + 3 * copy_ns + latency_ns) - (50'000 + 4 * copy_ns)));
  // Its message is the operand, of three blocks.
  CHECK(saved(Collective::reduce_scatter, "arrival_blocks") ==
        Approx(600'000 - 2 * (50'000 + copy_ns + latency_ns) - (50'000 + 4 * copy_ns / 3)));
}

TEST_CASE("savings: models across nodes, the better one first") {
  auto all = nodes_of_one_rank(4);
  add_calls(all, Collective::allreduce, 0, {0, 0, 0, 50'000}, std::vector<double>(4, 900'000), large);
  finalize(all, 1'000'000);
  const report::Report analysis = analyse(all);
  const double reduced = 50'000 + 2 * copy_ns;
  const double dissemination = 4 * (900'000 - reduced - 2 * net_ns - latency_ns - copy_ns);
  const double rabenseifner =
      4 * (900'000 - reduced - 4 * net_latency_ns - 1.5 * (net_ns - net_latency_ns) - latency_ns - copy_ns);
  CHECK(ranks_saved(analysis, "dissemination") == Approx(dissemination));
  CHECK(ranks_saved(analysis, "hierarchical_rabenseifner") == Approx(rabenseifner));
  CHECK(analysis.savings.best()->algorithm ==
        (rabenseifner > dissemination ? "hierarchical_rabenseifner" : "dissemination"));
}

TEST_CASE("savings: calls that papaya served, cannot serve, or was not measured for promise nothing") {
  const auto run = [](auto&& change) {
    auto all = one_node(2);
    add_calls(all, Collective::allreduce, 0, {0, 10'000}, {15'000, 15'000});
    finalize(all, 20'000);
    change(all);
    return analyse(all).savings;
  };
  const auto promises_nothing = [](const report::Savings& savings) {
    CHECK(savings.no_excess.ranks_ns == Approx(10'000));
    CHECK(savings.open_calls == 0);
    CHECK(savings.candidates.empty());
    CHECK(savings.best() == nullptr);
  };
  promises_nothing(run([](auto& all) {
    for (Record& one : all) one.events[0].algorithm = 1;
  }));
  promises_nothing(run([](auto& all) { all[1].events[0].reason = 2; }));  // device memory
  promises_nothing(run([](auto& all) {
    for (auto& one : all[0].header.alpha) one = {};
  }));
  promises_nothing(run([](auto& all) {
    for (Record& one : all) one.events[0].collective = static_cast<std::uint8_t>(Collective::alltoallw);
  }));
}

TEST_CASE("savings: a reason that a setting can lift is recognised by its id, however it is worded") {
  auto all = one_node(2);
  add_calls(all, Collective::allreduce, 0, {0, 10'000}, {15'000, 15'000});
  finalize(all, 20'000);
  for (Record& one : all) {
    std::strcpy(one.header.reason_names[7], "a sentence of another papaya");
    std::strcpy(one.header.reason_ids[7], "few_calls");
    one.events[0].reason = 7;
  }
  CHECK(analyse(all).savings.open_calls == 1);
  for (Record& one : all) std::strcpy(one.header.reason_ids[7], "few_calls_more");
  CHECK(analyse(all).savings.open_calls == 0);
}

TEST_CASE("savings: native is said to be best where it is") {
  auto all = one_node(2);
  add_calls(all, Collective::barrier, 0, {0, 10'000}, {10'100, 10'100}, 0);
  finalize(all, 20'000);
  const report::Report analysis = analyse(all);
  CHECK(analysis.savings.candidates.size() == 1);
  CHECK(analysis.savings.best() == nullptr);
  const auto json = nlohmann::json::parse(report::to_json(analysis));
  CHECK(json["savings"]["best"] == "native");
  CHECK(json["savings"]["no_excess"]["rank_seconds"] == Approx(200e-9));
}

TEST_CASE("savings: more ranks than cores wait for theirs") {
  auto all = one_node(2);
  for (Record& one : all) {
    one.header.cores = 1;
    one.header.node_ranks = 2;
  }
  add_calls(all, Collective::barrier, 0, {0, 10'000}, {90'000, 90'000}, 0);
  finalize(all, 100'000);
  // The first waited and is woken by one switch of two ranks on the core; the last did not wait.
  CHECK(ranks_saved(analyse(all), "arrival_barrier") == Approx(2 * (80'000 - latency_ns) - 10'000));
}

TEST_CASE("savings: by call site, and a saving at one does not count at another") {
  auto all = one_node(2);
  for (Record& one : all) {
    one.add_call_site({{"app", 0x100}});
    one.add_call_site({{"app", 0x200}});
  }
  add_calls(all, Collective::allreduce, 0, {0, 10'000}, {15'000, 15'000});
  add_calls(all, Collective::allreduce, 1, {20'000, 20'000}, {21'000, 21'000});
  for (Record& one : all) {
    one.events[0].call_site = 1;
    one.events[1].call_site = 2;
  }
  finalize(all, 30'000);
  const report::Report analysis = analyse(all);
  REQUIRE(analysis.call_sites.size() == 2);
  const auto& first = analysis.call_sites[analysis.call_sites[0].frames[0].offset == 0x100 ? 0 : 1].savings;
  const auto& second = analysis.call_sites[analysis.call_sites[0].frames[0].offset == 0x100 ? 1 : 0].savings;
  CHECK(first.no_excess.run_ns == Approx(5000));
  CHECK(second.no_excess.run_ns == Approx(1000));
  CHECK(second.best()->saving.run_ns == Approx(1000 - latency_ns));
  CHECK(analysis.savings.no_excess.run_ns == Approx(6000));
  const auto json = nlohmann::json::parse(report::to_json(analysis));
  for (const auto& site : json["call_sites"]) {
    CHECK(site["savings"]["best"] == "arrival_leader");
    CHECK(site["savings"]["no_excess"]["run_share"].is_number());
  }
  CHECK(report::to_text(analysis).find("Estimated savings") != std::string::npos);
}

TEST_CASE("savings: the text stays within its columns") {
  auto all = one_node(2);
  std::uint64_t call = 0;
  for (const Collective collective :
       {Collective::allreduce, Collective::reduce, Collective::bcast, Collective::allgather, Collective::alltoall,
        Collective::barrier, Collective::reduce_scatter_block})
    for (const std::uint64_t bytes : {std::uint64_t{8}, 2 * large}) {
      const double begin = 1e7 * static_cast<double>(call);
      const bool rooted = collective == Collective::reduce || collective == Collective::bcast;
      add_calls(all, collective, call++, {begin, begin}, {begin + 9e6, begin + 9e6}, bytes, rooted ? 0 : -1);
    }
  finalize(all, 2e8);
  const std::string text = report::to_text(analyse(all));
  const std::size_t begin = text.find("Estimated savings");
  REQUIRE(begin != std::string::npos);
  CHECK(text.find("several", begin) != std::string::npos);
  for (std::size_t line = begin; line < text.size();) {
    const std::size_t end = text.find('\n', line);
    CHECK(end - line <= 110);  // bytes: a bar or a unit has more of them than columns
    line = end + 1;
  }
}

TEST_CASE("savings: the algorithms it names are papaya's and take the calls they are named for") {
  for (const Collective collective : {Collective::allreduce, Collective::reduce, Collective::bcast,
                                      Collective::allgather, Collective::alltoall, Collective::barrier})
    for (const bool across : {false, true})
      for (const std::uint64_t bytes : {std::uint64_t{8}, large + 1}) {
        const bool rooted = collective == Collective::reduce || collective == Collective::bcast;
        auto all = across ? nodes_of_one_rank(2) : one_node(2);
        add_calls(all, collective, 0, {0, 0}, {9'000'000, 9'000'000}, bytes, rooted ? 0 : -1);
        finalize(all, 10'000'000);
        const report::Report analysis = analyse(all);
        REQUIRE_FALSE(analysis.savings.candidates.empty());
        for (const auto& candidate : analysis.savings.candidates) {
          const Descriptor* const algorithm = find_algorithm(collective, candidate.algorithm);
          REQUIRE(algorithm != nullptr);
          CHECK(algorithm->max_bytes >= bytes);
        }
      }
}
