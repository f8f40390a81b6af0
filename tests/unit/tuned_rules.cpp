#include "tools/tuned_rules.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tuning/selection.hpp"

namespace papaya {

namespace {

using nlohmann::json;

json row_of(const std::string& algorithm, int bytes, double ratio, double low, double high, const char* word,
            const std::string& collective = "allreduce") {
  json row = {{"collective", collective},
              {"algorithm", algorithm},
              {"bytes", bytes},
              {"skew_us", 100},
              {"excess_us", {{"p50", 10 * ratio}}},
              {"ratio_to_native", ratio},
              {"ratio_interval", {low, high}},
              {"word", word},
              {"wrong_results", 0},
              {"samples_us", {{1.0}, {2.0}}}};
  if (algorithm == "native") row["ratio_interval"] = row["word"] = nullptr;
  return row;
}

json native(int bytes, const std::string& collective = "allreduce") {
  return row_of("native", bytes, 1, 1, 1, "", collective);
}

std::string file_of(const char* pattern, const std::vector<json>& rows, const char* mpi = "Open MPI", int ranks = 4,
                    int nodes = 1) {
  return json{{"ranks", ranks},     {"nodes", nodes}, {"cores", 4 * nodes}, {"mpi", mpi},
              {"pattern", pattern}, {"margin", 5.0},  {"rows", rows}}
      .dump();
}

Tuned tune(const std::vector<std::string>& texts, std::string* problem = nullptr) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < texts.size(); ++i) names.push_back("file" + std::to_string(i));
  Tuned tuned;
  std::string why;
  CHECK(tuned_rules(texts, names, tuned, why) == (problem == nullptr));
  if (problem != nullptr) *problem = why;
  return tuned;
}

}  // namespace

TEST_CASE("tuning: native where the gain is within noise, else what is faster and under no pattern slower") {
  const Tuned tuned =
      tune({file_of("random",
                    {native(8), row_of("arrival_leader", 8, 0.5, 0.45, 0.55, "FASTER"),
                     row_of("arrival_tree", 8, 0.3, 0.2, 0.4, "FASTER"), row_of("auto", 8, 0.1, 0.1, 0.1, "FASTER"),
                     native(64), row_of("arrival_leader", 64, 0.6, 0.5, 0.7, "FASTER"), native(4096),
                     row_of("arrival_leader", 4096, 0.96, 0.9, 1.02, "UNCLEAR")}),
            file_of("none", {native(8), row_of("arrival_leader", 8, 1.01, 0.99, 1.04, "SAME"),
                             row_of("arrival_tree", 8, 1.2, 1.1, 1.3, "SLOWER"), native(64),
                             row_of("arrival_leader", 64, 0.8, 0.7, 0.9, "FASTER"), native(4096),
                             row_of("arrival_leader", 4096, 0.9, 0.8, 1.01, "UNCLEAR"), native(8, "gatherv")})});
  REQUIRE(tuned.choices.size() == 3);
  CHECK(tuned.choices[0] ==
        "Allreduce, 4 ranks on 1 node, 0 to 63 bytes, random arrivals: arrival_tree, 0.20 to 0.40 of native");
  CHECK(tuned.choices[1] == "Allreduce, 4 ranks on 1 node, 0 to 4095 bytes: arrival_leader, 0.45 to 1.04 of native");
  CHECK(tuned.choices[2] ==
        "Allreduce, 4 ranks on 1 node, 4K bytes: native; next: arrival_leader, ratio 0.96 (0.90 to 1.02)");
  CHECK(tuned.notes == std::vector<std::string>{"file1: gatherv is left out, which tuning files have no rules for"});

  Settings settings;
  std::vector<std::string> warnings;
  const tuning::Selection selection(settings, tuned.json, warnings);
  CHECK(warnings == std::vector<std::string>{});
  const auto chosen = [&](std::uint64_t bytes, int ranks, bool oversubscribed = false) {
    const tuning::Choice choice =
        selection.choose(Collective::allreduce, bytes, {.ranks = ranks, .nodes = 1, .oversubscribed = oversubscribed});
    return choice.rule == nullptr ? "native" : std::string(choice.rule->algorithm->name);
  };
  for (const auto bytes : {std::uint64_t{4}, std::uint64_t{8}}) CHECK(chosen(bytes, 4) == "arrival_leader");
  CHECK(chosen(4096, 4) == "native");
  CHECK(chosen(4096, 5) == "arrival_leader");  // the built-in table's
  CHECK(chosen(4096, 4, true) == "arrival_leader");
  const json rules = json::parse(tuned.json)["rules"];
  CHECK(rules[1]["measured"].size() == 4);
  CHECK(rules[1]["measured"][0]["native_excess_us"] == 10);
  CHECK(rules[1]["measured"][0]["turns"] == 2);
}

TEST_CASE("tuning: what is better under one pattern of arrivals has rules of its own, before those for any") {
  // With a straggler; `high`: of the interval at 8 bytes.
  const auto rows = [](double high) {
    return std::vector<json>{native(8),
                             row_of("arrival_leader", 8, 0.9, 0.85, 0.95, "FASTER"),
                             row_of("arrival_tree", 8, high - 0.05, 0.25, high, "FASTER"),
                             native(64),
                             row_of("arrival_leader", 64, 0.9, 0.8, 1.0, "UNCLEAR"),
                             row_of("arrival_tree", 64, 0.4, 0.35, 0.45, "FASTER"),
                             native(512),
                             row_of("arrival_leader", 512, 0.5, 0.45, 0.55, "FASTER"),
                             row_of("arrival_tree", 512, 0.45, 0.4, 0.52, "FASTER")};
  };
  const Tuned tuned = tune({file_of("straggler", rows(0.35)), file_of("last-late", rows(0.6)),
                            file_of("none", {native(8), row_of("arrival_leader", 8, 0.9, 0.8, 0.95, "FASTER"),
                                             row_of("arrival_tree", 8, 1.5, 1.4, 1.6, "SLOWER"), native(64),
                                             row_of("arrival_leader", 64, 1.2, 1.1, 1.3, "SLOWER"),
                                             row_of("arrival_tree", 64, 1.5, 1.4, 1.6, "SLOWER"), native(512),
                                             row_of("arrival_leader", 512, 0.9, 0.8, 0.95, "FASTER"),
                                             row_of("arrival_tree", 512, 1.5, 1.4, 1.6, "SLOWER")})});
  REQUIRE(tuned.choices.size() == 4);
  CHECK(tuned.choices[0] ==
        "Allreduce, 4 ranks on 1 node, 0 to 511 bytes, persistent arrivals: arrival_tree, 0.25 to 0.60 of native");
  Settings settings;
  std::vector<std::string> warnings;
  const tuning::Selection selection(settings, tuned.json, warnings);
  CHECK(warnings == std::vector<std::string>{});
  const auto chosen = [&](std::uint64_t bytes, tuning::ArrivalClass arrivals) {
    const tuning::Choice choice =
        selection.choose(Collective::allreduce, bytes, {.ranks = 4, .nodes = 1, .arrivals = arrivals});
    return choice.rule == nullptr ? "native" : std::string(choice.rule->algorithm->name);
  };
  using tuning::ArrivalClass;
  CHECK(selection.goes_by_arrivals(Collective::allreduce));
  CHECK_FALSE(selection.goes_by_arrivals(Collective::bcast));
  for (const ArrivalClass other : {ArrivalClass::unknown, ArrivalClass::balanced, ArrivalClass::random}) {
    CHECK(chosen(8, other) == "arrival_leader");
    CHECK(chosen(64, other) == "native");
    CHECK(chosen(512, other) == "arrival_leader");
  }
  CHECK(chosen(8, ArrivalClass::persistent) == "arrival_tree");
  CHECK(chosen(64, ArrivalClass::persistent) == "arrival_tree");
  // Better, but not beyond noise.
  CHECK(chosen(512, ArrivalClass::persistent) == "arrival_leader");
}

TEST_CASE("tuning: which of MPI's own algorithms won stands behind the rules for papaya's") {
  const Tuned tuned = tune({file_of(
      "none", {native(8), row_of("arrival_leader", 8, 0.5, 0.45, 0.55, "FASTER"),
               row_of("native:ring", 8, 0.8, 0.75, 0.85, "FASTER"), row_of("native:nosuch", 8, 0.1, 0.1, 0.1, "FASTER"),
               native(64), row_of("arrival_leader", 64, 1.5, 1.4, 1.6, "SLOWER"),
               row_of("native:ring", 64, 1.1, 1.05, 1.15, "SLOWER"), native(512),
               row_of("arrival_leader", 512, 0.5, 0.45, 0.55, "FASTER"),
               row_of("native:ring", 512, 1.1, 1.05, 1.15, "SLOWER")})});
  const json rules = json::parse(tuned.json)["rules"];
  REQUIRE(rules.size() == 4);
  CHECK(rules[0]["algorithm"] == "arrival_leader");
  CHECK(rules[0]["bytes"] == json{0, 63});
  CHECK(rules[1]["algorithm"] == "native");
  CHECK(rules[1]["parameters"] == json{{"openmpi", "ring"}});
  CHECK(rules[1]["measured"][0]["ratio"] == 0.8);
  CHECK(rules[2]["algorithm"] == "native");
  CHECK_FALSE(rules[2].contains("parameters"));
  CHECK(rules[2]["bytes"] == json{64, 511});
  CHECK(rules[3]["algorithm"] == "arrival_leader");
  CHECK(tuned.choices[1].find("native:ring") != std::string::npos);
  std::vector<std::string> warnings;
  CHECK(tuning::read_tuning_file(tuned.json, warnings).rows[index_of(Collective::allreduce)].size() == 4);
  CHECK(warnings.empty());
}

TEST_CASE("tuning: MPICH's own algorithms have MPICH's names") {
  const Tuned tuned = tune({file_of("none",
                                    {native(8), row_of("native:smp", 8, 0.8, 0.75, 0.85, "FASTER"),
                                     row_of("native:ring", 8, 0.1, 0.1, 0.1, "FASTER")},
                                    "MPICH 4.0.2", 4, 1)});
  const json rules = json::parse(tuned.json)["rules"];
  REQUIRE(rules.size() == 1);
  CHECK(rules[0]["parameters"] == json{{"mpich", "smp"}});
}

TEST_CASE("tuning: cores are those of a node, however many nodes measured") {
  const std::vector<json> rows = {native(8), row_of("dissemination", 8, 0.5, 0.45, 0.55, "FASTER")};
  const Tuned tuned = tune({file_of("none", rows, "MPICH", 4, 1), file_of("none", rows, "MPICH", 8, 2),
                            file_of("none", rows, "MPICH", 16, 2)});
  const json file = json::parse(tuned.json);
  CHECK(file["measured_on"]["cores"] == 4);
  REQUIRE(file["rules"].size() == 3);
  CHECK(file["rules"][1]["oversubscribed"] == false);
  CHECK(file["rules"][2]["oversubscribed"] == true);
}

TEST_CASE("tuning: parameters, more ranks than cores, wrong results and what is missing under a pattern") {
  json wrong = row_of("arrival_leader", 8, 0.5, 0.45, 0.55, "FASTER");
  wrong["wrong_results"] = 1;
  const Tuned tuned =
      tune({file_of("none",
                    {native(8), row_of("ring:chunk_bytes=4096", 8, 0.9, 0.85, 0.94, "FASTER"), wrong,
                     row_of("arrival_tree", 8, 0.2, 0.1, 0.3, "FASTER")},
                    "MPICH", 8),
            file_of("random", {native(8), row_of("ring:chunk_bytes=4096", 8, 0.9, 0.85, 0.94, "FASTER")}, "MPICH", 8)});
  const json under_one = json::parse(tuned.json)["rules"].at(0);
  CHECK(under_one["algorithm"] == "arrival_tree");
  CHECK(under_one["arrivals"] == "balanced");
  const json rule = json::parse(tuned.json)["rules"].at(1);
  CHECK(rule["algorithm"] == "ring");
  CHECK_FALSE(rule.contains("arrivals"));
  CHECK(rule["parameters"] == json{{"chunk_bytes", 4096}});
  CHECK(rule["oversubscribed"] == true);
  CHECK(json::parse(tuned.json)["measured_on"] == json{{"mpi", "MPICH"}, {"cores", 4}});
}

TEST_CASE("tuning: files that do not go together, or are none of the benchmark's") {
  std::string problem;
  tune({file_of("none", {native(8)}), file_of("none", {native(8)}, "MPICH")}, &problem);
  CHECK(problem == "file0 and file1 are of different machines or MPIs: make a tuning file of each.");
  for (const char* text : {"", "[]", "{}", "{\"rows\": 1}"}) {
    tune({text}, &problem);
    CHECK(problem == "file0 is no JSON file of papaya bench.");
  }
  tune({file_of("none", {native(8, "gatherv")})}, &problem);
  CHECK(problem == "nothing was measured that tuning files have rules for.");
}

}  // namespace papaya
