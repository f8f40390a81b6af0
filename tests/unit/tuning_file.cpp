#include "tuning/tuning_file.hpp"

#include <unistd.h>

#include <cstdlib>

#include "tests/catch.hpp"
#include "tools/explain.hpp"
#include "tuning/load.hpp"
#include "tuning/selection.hpp"

namespace papaya::tuning {

namespace {

struct Taken {
  Selection selection;
  std::vector<std::string> warnings;
  Settings settings;
};

Taken take(const std::string& text) {
  Taken taken;
  taken.selection = Selection(taken.settings, text, taken.warnings);
  return taken;
}

std::string file_of(const std::string& rules) {
  return R"({"version": 1, "rules": [)" + rules + "]}";
}

// The one warning of a file with this rule.
std::string warning_of(const std::string& rule) {
  const Taken taken = take(file_of(rule));
  return taken.warnings.size() == 1 ? taken.warnings[0] : std::to_string(taken.warnings.size()) + " warnings";
}

std::string_view chosen(const Taken& taken, std::uint64_t bytes, const Facts& facts,
                        Collective collective = Collective::allreduce) {
  const Choice choice = taken.selection.choose(collective, bytes, facts);
  return choice.rule == nullptr ? "native" : choice.rule->algorithm->name;
}

bool says(const std::string& text, std::string_view part) {
  INFO(text);
  CHECK(text.find(part) != text.npos);
  return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("every condition of a rule counts") {
  const Taken taken = take(file_of(R"(
      {"collective": "MPI_Allreduce", "algorithm": "ring", "parameters": {"chunk_bytes": "4K"}, "nodes": [2, null],
       "ranks": [4, 16], "ranks_per_node": 4, "oversubscribed": false, "bytes": ["64K", "1M"], "arrivals": "persistent"},
      {"collective": "allreduce", "algorithm": "dissemination", "nodes": [2, null], "bytes": [null, 65535]},
      {"collective": "allreduce", "algorithm": "native", "bytes": [null, "2M"], "nodes": 1})"));
  CHECK(taken.warnings.empty());
  const Facts facts{.ranks = 8, .nodes = 2, .ranks_per_node = 4, .arrivals = ArrivalClass::persistent};
  CHECK(chosen(taken, 65536, facts) == "ring");
  CHECK(taken.selection.choose(Collective::allreduce, 65536, facts).rule->values[0] == 4096);
  CHECK_FALSE(taken.selection.choose(Collective::allreduce, 65536, facts).forced);
  CHECK(chosen(taken, 1 << 20, facts) == "ring");
  CHECK(chosen(taken, 65535, facts) == "dissemination");
  CHECK(chosen(taken, (1 << 20) + 1, facts) == "native");
  const auto with = [&](auto change) {
    Facts other = facts;
    change(other);
    return chosen(taken, 65536, other);
  };
  CHECK(with([](Facts& f) { f.ranks = 16; }) == "ring");
  CHECK(with([](Facts& f) { f.ranks = 17; }) == "native");
  CHECK(with([](Facts& f) { f.ranks = 3; }) == "native");
  CHECK(with([](Facts& f) { f.nodes = 3; }) == "ring");
  CHECK(with([](Facts& f) { f.ranks_per_node = 3; }) == "native");
  CHECK(with([](Facts& f) { f.ranks_per_node = 0; }) == "native");  // not known
  CHECK(with([](Facts& f) { f.oversubscribed = true; }) == "native");
  CHECK(with([](Facts& f) { f.arrivals = ArrivalClass::rotating; }) == "native");
  CHECK(with([](Facts& f) { f.arrivals = ArrivalClass::unknown; }) == "native");
  // Native by a rule, on one node, up to its size; beyond it the built-in table has an algorithm.
  CHECK(taken.selection.choose(Collective::allreduce, 8, {4, 1}).reason == Reason::table);
  CHECK(chosen(taken, 8, {4, 1}) == "native");
  CHECK(chosen(taken, (2 << 20) + 1, {4, 1}) == "arrival_tree");
  CHECK(chosen(taken, 8, {4, 1}, Collective::reduce) == "arrival_leader");
  CHECK(taken.selection.works_across_nodes());
}

TEST_CASE("where arrivals are not known the rule for any of them applies") {
  const Taken taken = take(file_of(R"({"collective": "bcast", "algorithm": "native", "arrivals": "persistent"},
                                      {"collective": "bcast", "algorithm": "tree_bcast", "arrivals": "any"})"));
  CHECK(taken.warnings.empty());
  CHECK(chosen(taken, 8, {4, 1}, Collective::bcast) == "tree_bcast");
  CHECK(chosen(taken, 8, {.ranks = 4, .nodes = 1, .arrivals = ArrivalClass::random}, Collective::bcast) ==
        "tree_bcast");
  CHECK(chosen(taken, 8, {.ranks = 4, .nodes = 1, .arrivals = ArrivalClass::persistent}, Collective::bcast) ==
        "native");
}

TEST_CASE("a rule for a call site applies to calls that are known to come from there") {
  const Taken taken = take(file_of(R"({"collective": "allreduce", "algorithm": "ring", "site": "solve.c:88"},
                                      {"collective": "allreduce", "algorithm": "native", "site": "solver+0x11f3"},
                                      {"collective": "bcast", "algorithm": "tree_bcast", "site": "b.c:9"},
                                      {"collective": "allreduce", "algorithm": "arrival_tree", "site": "solver+0x11f3",
                                       "ranks": [2, 8]},
                                      {"collective": "allreduce", "algorithm": "arrival_tree"})"));
  // The fourth is for calls that the second takes.
  REQUIRE(taken.warnings.size() == 1);
  says(taken.warnings[0], "line 4, column 39: this rule would never apply: the one of line 2");
  const Selection& selection = taken.selection;
  REQUIRE(selection.sites().size() == 3);
  CHECK(selection.sites()[1] == "solver+0x11f3");
  CHECK(selection.sites_of(Collective::allreduce) == 3);
  CHECK(selection.sites_of(Collective::bcast) == 4);
  CHECK(selection.sites_of(Collective::reduce) == 0);
  const auto from = [&](std::uint64_t sites) { return chosen(taken, 8, {.ranks = 4, .nodes = 1, .sites = sites}); };
  CHECK(from(0) == "arrival_tree");
  CHECK(from(1) == "ring");
  CHECK(from(2) == "native");
  CHECK(from(3) == "ring");
  CHECK(from(4) == "arrival_tree");
  const auto explained = [&](std::uint64_t sites) {
    return explain(selection, taken.settings, "my.json", Collective::allreduce, 8,
                   {.ranks = 4, .nodes = 1, .sites = sites});
  };
  says(explained(0), "  for calls from solve.c:88\n  passed over: it is not known to come from there\n");
  says(explained(2), "  for calls from solve.c:88\n  passed over: it comes from solver+0x11f3\n");
  std::string many;
  for (std::size_t i = 0; i <= most_sites; ++i)
    many += (i == 0 ? "" : ",") + std::string(R"({"collective": "bcast", "algorithm": "native", "site": "a.c:)") +
            std::to_string(i) + "\"}";
  const Taken full = take(file_of(many));
  REQUIRE(full.warnings.size() == 1);
  says(full.warnings[0], "more than 64 call sites; the rule is ignored");
}

TEST_CASE("calls that a rule's algorithm cannot serve go by the next one") {
  const Taken taken = take(file_of(R"({"collective": "allreduce", "algorithm": "arrival_leader"},
                                      {"collective": "allreduce", "algorithm": "ring"})"));
  CHECK(taken.warnings.empty());
  CHECK(chosen(taken, 8, {4, 1}) == "arrival_leader");
  CHECK(chosen(taken, 65537, {4, 1}) == "ring");
  CHECK(chosen(taken, 8, {4, 2}) == "ring");
}

TEST_CASE("rules with one algorithm and the same parameters share its plans") {
  const Taken taken = take(file_of(R"({"collective": "allreduce", "algorithm": "ring", "bytes": 8},
                                      {"collective": "allreduce", "algorithm": "ring", "bytes": 16},
                                      {"collective": "allreduce", "algorithm": "ring", "bytes": 32,
                                       "parameters": {"chunk_bytes": 4096}})"));
  const auto rule_of = [&](std::uint64_t bytes) {
    return taken.selection.choose(Collective::allreduce, bytes, {4, 1}).rule;
  };
  CHECK(rule_of(8) == rule_of(16));
  CHECK(rule_of(8) != rule_of(32));
  const Selection copy = taken.selection;  // of which plans may outlive the original
  CHECK(copy.choose(Collective::allreduce, 8, {4, 1}).rule == rule_of(8));
}

TEST_CASE("the environment stands above the file, and auto is what the file says") {
  const std::string file = file_of(R"({"collective": "allreduce", "algorithm": "ring"})");
  std::vector<std::string> warnings;
  Settings settings;
  settings.set(Variable::allreduce, "arrival_tree");
  Selection selection(settings, file, warnings);
  CHECK(selection.choose(Collective::allreduce, 8, {4, 1}).rule->algorithm->name == "arrival_tree");
  std::string problem;
  REQUIRE(selection.select(Collective::allreduce, "auto", problem));
  CHECK(selection.choose(Collective::allreduce, 8, {4, 1}).rule->algorithm->name == "ring");
  CHECK(selection.choose(Collective::allreduce, 8, {4, 1}, Form::nonblocking).reason == Reason::no_algorithm);
}

TEST_CASE("sizes that ranks do not know of each other: the file's rules count too") {
  const auto choice = [](const std::string& rules, const Facts& facts) {
    const Taken taken = take(file_of(rules));
    CHECK(taken.warnings.empty());
    return taken.selection.choose_for_any_size(Collective::alltoall, Collective::alltoallv, facts);
  };
  CHECK(choice(R"({"collective": "alltoall", "algorithm": "native"})", {4, 1}).reason == Reason::table);
  CHECK(choice(R"({"collective": "alltoall", "algorithm": "native", "bytes": [0, 64]})", {4, 1}).reason ==
        Reason::sizes);
  CHECK(choice(R"({"collective": "alltoall", "algorithm": "native", "bytes": [64, 64]})", {4, 1}).reason ==
        Reason::sizes);
  CHECK(choice(R"({"collective": "alltoall", "algorithm": "native", "bytes": [64, 64], "ranks": 5})", {4, 1}).rule !=
        nullptr);
  CHECK(choice(R"({"collective": "alltoall", "algorithm": "native", "bytes": 0})", {4, 1}).rule != nullptr);
}

TEST_CASE("what is wrong is told with line, column and the nearest name, and the rest stays in force") {
  const Taken taken = take(
      "{\n  \"version\": 1,\n  \"rules\": [\n"
      "    {\"collective\": \"allreduce\", \"algorithm\": \"arival_leader\"},\n"
      "    {\"collective\": \"allreduce\", \"comment\": \"\xc3\xbc\", \"algorithm\": \"ring\", \"parameters\": "
      "{\"chunk_byte\": 4096}},\n"
      "    {\"collective\": \"bcast\", \"algorithm\": \"native\"}\n  ]\n}\n");
  REQUIRE(taken.warnings.size() == 2);
  CHECK(taken.warnings[0] ==
        "PAPAYA_TUNING, line 4, column 46: no algorithm 'arival_leader' for MPI_Allreduce (did you mean "
        "arrival_leader? papaya info --algorithms allreduce lists them); the rule is ignored.");
  CHECK(taken.warnings[1] ==
        "PAPAYA_TUNING, line 5, column 85: no parameter 'chunk_byte' (did you mean chunk_bytes?); the rule is "
        "ignored.");
  CHECK(chosen(taken, 8, {4, 1}) == "arrival_leader");  // the built-in table's
  CHECK(chosen(taken, 8, {4, 1}, Collective::bcast) == "native");

  says(warning_of(R"({"collective": "alreduce", "algorithm": "ring"})"),
       "column 41: no algorithms for a collective "
       "'alreduce' (did you mean allreduce?)");
  says(warning_of(R"({"collective": "scan", "algorithm": "native"})"), "no algorithms for a collective 'scan'");
  says(warning_of(R"({"collective": "alltoallv", "algorithm": "native"})"), "MPI_Alltoallv goes by the rules for");
  says(warning_of(R"({"collective": "allgatherv", "algorithm": "native"})"), "MPI_Allgatherv goes by the rules for");
  says(warning_of(R"({"algorithm": "ring"})"), "column 26: the rule has no collective");
  says(warning_of(R"({"collective": "allreduce"})"), "the rule has no algorithm");
  says(warning_of(R"({"collective": "allreduce", "algorithm": "auto"})"), "auto stands alone");
  const auto with = [](const std::string& field) {
    return warning_of(R"({"collective": "allreduce", "algorithm": "ring", )" + field + "}");
  };
  says(with(R"("rank": 4)"), "column 75: no field 'rank' in a rule (did you mean ranks?)");
  says(with(R"("ranks": 4, "ranks": 5)"), "'ranks' is there twice");
  says(with(R"("ranks": 0)"), "ranks must be a whole number from 1 to");
  says(with(R"("ranks": [4, 2])"), "this range of ranks ends before it begins");
  says(with(R"("nodes": [1])"), "nodes must be a number, or [LOWEST, HIGHEST]");
  says(with(R"("ranks_per_node": "4")"), "ranks_per_node must be a whole number");
  says(with(R"("ranks": 4294967297)"), "ranks must be a whole number");
  says(with(R"("bytes": ["4Q", null])"), "column 85: a size must be a whole number or a text such as");
  says(with(R"("bytes": ["4K", 8])"), "this range of bytes ends before it begins");
  says(with(R"("oversubscribed": "no")"), "oversubscribed must be true or false");
  says(with(R"("arrivals": "randon")"), "did you mean random?");
  says(with(R"("site": "solve.c")"), "column 83: site must be a call site as the report has it, such as");
  says(with(R"("site": 88)"), "site must be a call site");
  says(with(R"("parameters": {"chunk_bytes": 1})"), "column 105: parameter chunk_bytes must be from");
  says(with(R"("parameters": {"chunk_bytes": 1.5})"), "column 105: a parameter must be a whole number or a text");
  says(with(R"("parameters": {"chunk_bytes=1:": 1})"), "parameter chunk_bytes must be from");
  says(with(R"("parameters": [])"), "parameters must be an object");
  says(warning_of("7"), "a rule must be an object");
  const auto native = [](const std::string& parameters) {
    return warning_of(R"({"collective": "bcast", "algorithm": "native", "parameters": )" + parameters + "}");
  };
  says(native(R"({"openmpi": "piepline"})"),
       "no algorithm 'piepline' of Open MPI for MPI_Bcast (did you mean pipeline?)");
  says(native(R"({"openmpi": "pipeline", "segment": 1})"), "no field 'segment' in the parameters of native");
  says(native(R"({"openmpi": "pipeline", "segment_bytes": "4G"})"), "segment_bytes must be below 2G");
  says(native(R"({"openmpi": "chain", "fanout": 0})"), "fanout must be a whole number from 1 to");
  says(native(R"({"fanout": 2})"), "fanout and segment_bytes are about an algorithm of Open MPI");
  says(native(R"({"mpich": "smp", "segment_bytes": "4K"})"), "segment_bytes are about an algorithm of Open MPI");
  says(native("{}"), "the parameters of native name none of MPI's algorithms");
  says(native(R"({"mpich": "binomail"})"), "no algorithm 'binomail' of MPICH for MPI_Bcast (did you mean binomial?)");
  says(native(R"({"ucc": "knomial"})"), "no algorithm 'knomial' of UCC for MPI_Bcast");
  says(warning_of(R"({"collective": "allreduce", "algorithm": "native"},
                     {"collective": "allreduce", "algorithm": "ring", "ranks": 4})"),
       "line 2, column 22: this rule would never apply: the one of line 1 stands before it");
}

TEST_CASE("a file that is no tuning file is ignored as a whole") {
  const auto warning = [](const std::string& text) {
    const Taken taken = take(text);
    CHECK(chosen(taken, 8, {4, 1}) == "arrival_leader");
    return taken.warnings.size() == 1 ? taken.warnings[0] : std::to_string(taken.warnings.size()) + " warnings";
  };
  says(warning("{\n  \"version\": 1,\n  \"rules\": [\n}"), "line 4, column 1: syntax error while parsing value");
  says(warning(R"({"version": 1, "rules": [{"collective": "allreduce", "algorithm": "native"})"), "syntax error");
  says(warning("{} {}"), "syntax error");
  says(warning("{}"), "the file has no version");
  says(warning(R"({"version": 2, "rules": []})"), "column 13: this papaya reads version 1");
  says(warning(R"({"version": 1})"), "the file has no list of rules");
  says(warning("[]"), "a tuning file must be an object");
  says(warning(R"({"version": 1e999, "rules": []})"), "number overflow");
  says(warning(std::string(100000, '[')), "nested more deeply than a tuning file may be");
  says(warning("[" + std::string(600000, ',')), "syntax error");
  std::string many = "{\"version\": 1, \"rules\": [0";
  for (int i = 0; i < 300000; ++i) many += ",0";
  says(warning(many + "]}"), "more values than a tuning file may have");
  says(warning("{" + std::string(largest_file, ' ') + "}"), "larger than 8M");
  says(warning("{\"version\": 1, \"\xff\": 1}"), "column 17: syntax error");
}

TEST_CASE("what is not in a tuning file, and which file it is, is told") {
  char path[] = "/tmp/papaya-tuning-XXXXXX";
  const int file = mkstemp(path);
  REQUIRE(file >= 0);
  std::string problem;
  CHECK(load(path, problem).empty());
  CHECK(problem == "is empty");
  REQUIRE(write(file, "\n \n", 3) == 3);
  CHECK(load(path, problem).empty());
  CHECK(problem == "is empty");
  REQUIRE(write(file, "# nothing\n", 10) == 10);
  problem.clear();
  CHECK(load(path, problem).size() == 13);
  CHECK(problem.empty());
  close(file);
  unlink(path);
  CHECK(warning_naming("a.json", "PAPAYA_TUNING, line 1: b") == "a.json, line 1: b");
  CHECK(warning_naming("a.json", "PAPAYA_ALLREDUCE: b") == "PAPAYA_ALLREDUCE: b");
}

TEST_CASE("many problems are counted, not told one by one") {
  std::string rules = "1";
  for (int i = 0; i < 99; ++i) rules += ",1";
  const Taken taken = take(file_of(rules));
  CHECK(taken.warnings.size() == Problems::most + 1);
  CHECK(taken.warnings.back() == "PAPAYA_TUNING: 84 more problems.");
}

TEST_CASE("what was measured is shown by the explanation, with the rules that were passed over") {
  const std::string text = file_of(R"(
    {"collective": "allreduce", "algorithm": "ring", "nodes": [2, null]},
    {"collective": "allreduce", "algorithm": "arrival_leader", "arrivals": "random", "bytes": [1, "1K"]},
    {"collective": "allreduce", "algorithm": "arrival_leader", "bytes": ["32K", "128K"], "comment": "by hand"},
    {"collective": "allreduce", "algorithm": "arrival_tree", "ranks": [2, 8], "bytes": ["64K", null], "measured": [
      {"bytes": 65536, "pattern": "random", "skew_us": 200, "excess_us": 5.5, "native_excess_us": 11, "ratio": 0.5,
       "ratio_interval": [0.45, 0.55], "outcome": "FASTER", "turns": 20}]})");
  Settings settings;
  std::vector<std::string> warnings;
  const Selection selection(settings, text, warnings);
  CHECK(warnings.empty());
  const auto explained = [&](std::uint64_t bytes, const Facts& facts) {
    return explain(selection, settings, "my.json", Collective::allreduce, bytes, facts);
  };
  const std::string text_of_call = explained(100000, {.ranks = 4, .nodes = 1, .ranks_per_node = 4});
  for (const std::string_view part :
       {"MPI_Allreduce of 100000 bytes; 4 ranks on 1 node; a core for each rank; arrivals not known\n\n",
        "my.json, line 2: ring:chunk_bytes=", "  for 2 or more nodes\n  passed over: it is on 1 node\n",
        "  for 1 to 1K bytes, random arrivals\n  passed over: the call has 100000 bytes\n",
        "  for 32K to 128K bytes\n  by hand\n  passed over: larger than the algorithm takes\n",
        "  for 64K bytes or more, 2 to 8 ranks\n  measured, 64K bytes, pattern random of 200 us: 5.5 us, native 11 us, "
        "ratio 0.50 (0.45 to 0.55), FASTER, 20 turns\n  applies\n\narrival_tree"})
    says(text_of_call, part);
  says(explained(8, {.ranks = 4, .nodes = 1}), "passed over: its arrivals are not known\n");
  says(explained(1 << 20, {.ranks = 9, .nodes = 1}),
       "passed over: the communicator has 9 ranks\n\nbuilt-in table: arrival_leader");
  says(explained(1 << 20, {.ranks = 9, .nodes = 1}), "  for 1 to 64K bytes, up to 128 ranks\n");
  says(explained(8, {.ranks = 200, .nodes = 1}), "\nnative: the tuning table prefers MPI\n");
  settings.set(Variable::allreduce, "0-4K:ring");
  const Selection named(settings, text, warnings);
  says(explain(named, settings, "my.json", Collective::allreduce, 8, {4, 1}), "PAPAYA_ALLREDUCE=0-4K:ring: ring");
  says(explain(named, settings, "my.json", Collective::allreduce, 8192, {4, 1}),
       "native: its size is in none of the user's ranges");
}

}  // namespace papaya::tuning
