#include "tools/tune_plan.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {

namespace {

using nlohmann::json;

TuneOptions options_of(std::vector<std::string> words) {
  TuneOptions options;
  std::string problem;
  CHECK(parse(std::move(words), options, problem));
  CHECK(problem.empty());
  return options;
}

std::string problem_of(std::vector<std::string> words) {
  TuneOptions options;
  std::string problem;
  if (parse(std::move(words), options, problem)) {
    CHECK(planned(options, problem).empty());
  }
  return problem;
}

// What the benchmark writes, as far as rules are made of it: one algorithm, twice as fast as native.
std::string result_of(const TunePart& part, const std::string& mpi = "MPICH 4.0.2") {
  json rows = json::array();
  for (const std::size_t bytes : part.sizes)
    for (const char* algorithm : {"native", "arrival_leader"}) {
      const bool native = std::string(algorithm) == "native";
      rows.push_back({{"collective", part.collective},
                      {"algorithm", algorithm},
                      {"bytes", bytes},
                      {"skew_us", 0},
                      {"excess_us", {{"p50", native ? 10 : 5}}},
                      {"ratio_to_native", native ? 1 : 0.5},
                      {"ratio_interval", {native ? 1 : 0.45, native ? 1 : 0.55}},
                      {"word", native ? json() : json("FASTER")},
                      {"wrong_results", 0},
                      {"samples_us", json::array()}});
    }
  return json{{"ranks", 4},   {"nodes", 1}, {"cores", 8}, {"mpi", mpi}, {"rows", rows}, {"pattern", part.pattern},
              {"margin", 5.0}}
      .dump();
}

}  // namespace

TEST_CASE("tune: times") {
  double seconds = 0;
  CHECK((parse_seconds("90", seconds) && seconds == 90));
  CHECK((parse_seconds("90s", seconds) && seconds == 90));
  CHECK((parse_seconds("1.5m", seconds) && seconds == 90));
  CHECK((parse_seconds("2h", seconds) && seconds == 7200));
  for (const char* wrong : {"", "m", "0", "-1s", "1d", "nan", "inf", "1e9h"})
    CHECK_FALSE(parse_seconds(wrong, seconds));
}

TEST_CASE("tune: rows of a collective of which MPI's own algorithms have no names") {
  const TunePart part{"reduce_scatter", {8, 64}, "none"};
  TunePart with_natives = part;
  with_natives.natives = true;
  CHECK(rows_of(part, true) > 2);
  CHECK(rows_of(with_natives, true) == rows_of(part, true));
}

TEST_CASE("tune: all patterns of a collective, then the next one") {
  std::string problem;
  const std::vector<TunePart> all = planned(options_of({}), problem);
  REQUIRE(all.size() == 30);
  CHECK(all[0].name() == "allreduce, arrivals none");
  CHECK(all[2].name() == "allreduce, arrivals straggler");
  CHECK(all[0].sizes == std::vector<std::size_t>{8, 64, 512, 4096, 32768, 262144, 1048576});
  const auto barrier =
      std::find_if(all.begin(), all.end(), [](const auto& part) { return part.collective == "barrier"; });
  CHECK(barrier->sizes.size() == 1);

  const std::vector<TunePart> some = planned(
      options_of({"--collectives", "MPI_Reduce,bcast", "-m", "3:20:2", "--patterns", "none,random", "--skew", "50"}),
      problem);
  REQUIRE(some.size() == 4);
  CHECK(some[0].sizes == std::vector<std::size_t>{8, 16, 24});  // whole doubles, each once
  CHECK(some[0].skew_us < 0);
  CHECK(some[1].skew_us == 50);
  CHECK(some[2].sizes == std::vector<std::size_t>{3, 6, 12, 20});
  const std::vector<TunePart> copy = parts_of(to_text(some));
  REQUIRE(copy.size() == 4);
  CHECK(copy[1].name() == some[1].name());
  CHECK(copy[1].sizes == some[1].sizes);
}

TEST_CASE("tune: what cannot be measured") {
  CHECK(problem_of({"--collectives", "allredcue"}).find("did you mean allreduce?") != std::string::npos);
  CHECK(problem_of({"--patterns", "stragler"}).find("did you mean straggler?") != std::string::npos);
  CHECK(problem_of({"--patterns", "replay:file"}).find("--from") != std::string::npos);
  CHECK(problem_of({"-m", "x"}).find("x") != std::string::npos);
  CHECK(problem_of({"--budget", "soon"}).find("90s, 5m or 1h") != std::string::npos);
  CHECK(problem_of({"a.json", "--budget", "5m"}).find("--budget is for measuring") != std::string::npos);
  CHECK(problem_of({"--from", "run", "-m", "8"}).find("--from has the sizes") != std::string::npos);
}

TEST_CASE("tune: what a run did, on communicators of as many ranks") {
  const support::Folder folder;
  std::vector<support::Record> records = support::records(3);
  for (int rank = 0; rank < 3; ++rank) {
    support::Record& record = records[static_cast<std::size_t>(rank)];
    if (rank < 2) record.add_communicator(7, 2, rank, "pairs");
    for (std::uint64_t call = 0; call < 8; ++call) {
      const double at = 1e6 * static_cast<double>(call + 1);
      record.add_call(Collective::allreduce, call, at + 1e3 * rank, at + 5e3, call < 4 ? 100 : 5000);
    }
    if (rank < 2) record.add_call(Collective::bcast, 0, 2e7, 2e7 + 100, 8, 0, 7);
    record.finalize(3e7);
  }
  folder.write(records);
  const report::Run run = report::load_run(folder.path(), {}, report::Extent::streamed_all);
  std::vector<std::string> notes;
  std::string problem;
  const std::vector<TunePart> parts = planned_from(run, options_of({"--from", "x"}), 3, notes, problem);
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].collective == "allreduce");
  CHECK(parts[0].sizes == std::vector<std::size_t>{104, 5000});
  CHECK(parts[0].pattern == "replay:" + folder.path());
  CHECK(std::count(parts[0].arrivals.begin(), parts[0].arrivals.end(), '\n') == 8);
  CHECK(parts[0].arrivals.starts_with("0.000 1.000 2.000\n"));
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].starts_with("MPI_Bcast was called on communicators of 2 ranks, such as pairs"));
  const bench::Options options = options_for(parts[0], 0.1);
  CHECK(options.pattern == bench::Pattern::replay);
  CHECK(options.sizes == parts[0].sizes);

  CHECK(planned_from(run, options_of({"--from", "x"}), 5, notes, problem).empty());
  CHECK(problem.find("5 ranks") != std::string::npos);
}

TEST_CASE("tune: what is measured stays, and is measured once") {
  const support::Folder folder;
  const std::string output = folder.path() + "/tuning.json";
  const TuneStore::Launch launch{4, 1, 8, "MPICH 4.0.2"};
  std::string problem;
  const std::vector<TunePart> parts =
      planned(options_of({"--collectives", "allreduce", "-m", "8:64:8", "--patterns", "none,random"}), problem);
  {
    TuneStore store;
    CHECK(store.open(output, launch, problem));
    CHECK_FALSE(store.make_rules(problem));
    CHECK(store.rest_of(parts[0]).sizes == parts[0].sizes);
    TunePart first_size = parts[0];
    first_size.sizes.resize(1);
    CHECK(store.add(first_size, result_of(first_size)));
    const TunePart rest = store.rest_of(parts[0]);
    CHECK(rest.sizes == std::vector<std::size_t>{64});
    CHECK(store.add(rest, result_of(rest)));
    CHECK(store.rest_of(parts[0]).sizes.empty());
    CHECK(store.rest_of(parts[1]).sizes == parts[1].sizes);
    CHECK(store.choices().size() == 1);
    CHECK(json::parse(folder.read("tuning.json"))["rules"][0]["algorithm"] == "arrival_leader");
  }
  problem.clear();
  TuneStore again;
  CHECK(again.open(output, launch, problem));
  CHECK(again.rest_of(parts[0]).sizes.empty());
  CHECK(again.add(parts[1], result_of(parts[1])));
  CHECK(json::parse(folder.read("tuning.json"))["rules"][0]["measured"].size() == 4);
  TuneStore of_more_ranks;
  CHECK(of_more_ranks.open(output, {8, 1, 8, "MPICH 4.0.2"}, problem));
  CHECK(of_more_ranks.rest_of(parts[0]).sizes == parts[0].sizes);
  TuneStore on_two_nodes;
  CHECK(on_two_nodes.open(output, {8, 2, 16, "MPICH 4.0.2"}, problem));

  TuneStore other;
  CHECK_FALSE(other.open(output, {4, 1, 8, "Open MPI v4.1.4"}, problem));
  CHECK(problem.find("was measured with MPICH 4.0.2 on nodes of 8 cores") != std::string::npos);
  json without_sizes = json::parse(folder.read("tuning.json.measured"));
  without_sizes["parts"][0]["part"].erase("sizes");
  for (const std::string& text : {std::string("{\"parts\": [{}]}"), without_sizes.dump()}) {
    folder.write("tuning.json.measured", text);
    TuneStore damaged;
    problem.clear();
    CHECK_FALSE(damaged.open(output, launch, problem));
    CHECK(problem.find("is not what papaya tune writes") != std::string::npos);
  }
  TuneStore nowhere;
  CHECK_FALSE(nowhere.open(folder.path() + "/missing/tuning.json", launch, problem));
  CHECK(problem.find("cannot write") != std::string::npos);
}

}  // namespace papaya
