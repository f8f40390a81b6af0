#include "tuning/selection.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "tests/catch.hpp"

namespace papaya::tuning {

namespace {
constexpr Facts four_ranks{4, 1};

Choice choose(const char* value, std::uint64_t bytes, const Facts& facts = four_ranks) {
  static Selection selection;
  std::vector<std::string> warnings;
  Settings settings;
  settings.set(Variable::allreduce, value);
  selection = Selection(settings, "", warnings);
  CHECK(warnings.empty());
  return selection.choose(Collective::allreduce, bytes, facts);
}

std::string problem_of(const char* value) {
  std::vector<std::string> warnings;
  Settings settings;
  settings.set(Variable::allreduce, value);
  const Selection selection(settings, "", warnings);
  CHECK(settings.is_default(Variable::allreduce));
  return warnings.size() == 1 ? warnings[0] : "";
}
TEST_CASE("selection: what may be tried, on one node and across nodes") {
  MessageTimes network;
  const auto names_of = [&](Collective collective, std::uint64_t bytes, const Facts& facts) {
    std::set<std::string_view> names;
    for (const Rule* rule : Selection::candidates(collective, bytes, facts, network))
      names.insert(rule->algorithm->name);
    return names;
  };
  const Facts here{4, 1};
  const Facts across{.ranks = 16, .nodes = 4, .ranks_per_node = 4};
  CHECK(names_of(Collective::allreduce, 64, here).contains("arrival_leader"));
  CHECK_FALSE(names_of(Collective::allreduce, 64, here).contains("dissemination"));
  // The ring takes 30 hops, and so do others by the number of ranks.
  CHECK(names_of(Collective::allreduce, 64, across) ==
        std::set<std::string_view>{"dissemination", "hierarchical_leaders", "hierarchical_rabenseifner",
                                   "hierarchical_tree", "rabenseifner"});
  // Every byte goes up and down the tree of nodes once for each below, and one core of a node does what four share.
  CHECK(names_of(Collective::allreduce, 1 << 20, across) ==
        std::set<std::string_view>{"hierarchical_leaders", "rabenseifner", "ring"});
  CHECK(names_of(Collective::barrier, 0, across) ==
        std::set<std::string_view>{"dissemination", "hierarchical_barrier"});
  CHECK(names_of(Collective::bcast, 64, across) == std::set<std::string_view>{"hierarchical_bcast", "notified_bcast"});
  CHECK(names_of(Collective::reduce, 64, across) == std::set<std::string_view>{"hierarchical_reduce"});
  CHECK(names_of(Collective::alltoall, 64, across) ==
        std::set<std::string_view>{"hierarchical_alltoall", "notified_alltoall"});
  CHECK(names_of(Collective::allgather, 1024, across) == std::set<std::string_view>{"hierarchical_allgather"});
  const Facts many{.ranks = 256, .nodes = 64, .ranks_per_node = 4};
  CHECK(names_of(Collective::allreduce, 1 << 16, many) ==
        std::set<std::string_view>{"hierarchical_leaders", "hierarchical_rabenseifner", "rabenseifner"});
  CHECK(names_of(Collective::allreduce, 16 << 20, many) ==
        std::set<std::string_view>{"hierarchical_leaders", "rabenseifner", "ring"});
  // The radix is not measured in a trial: 4 nodes in one round, 64 in three, or in two where latency counts more.
  const auto radix_of = [&](const Facts& facts) {
    for (const Rule* rule : Selection::candidates(Collective::barrier, 0, facts, network))
      if (rule->algorithm->name == "hierarchical_barrier") {
        const std::vector<const Rule*> again = Selection::candidates(Collective::barrier, 0, facts, network);
        CHECK(std::find(again.begin(), again.end(), rule) != again.end());
        return rule->values[0];
      }
    return std::int64_t{-1};
  };
  CHECK(radix_of(across) == 3);
  CHECK(radix_of(many) == 3);
  // A message of a few bytes takes about as long here as one of 64 KiB: few steps win, whatever they carry.
  network.add(8, 100'000);
  network.add(1 << 16, 130'000);
  network.add(1 << 20, 800'000);
  CHECK(radix_of(many) == 7);
  const std::set<std::string_view> far = names_of(Collective::allreduce, 1 << 16, across);
  CHECK(far.contains("dissemination"));
  CHECK_FALSE(far.contains("ring"));
}

TEST_CASE("selection: every algorithm that may be tried across nodes says how long it takes") {
  for (const Descriptor* algorithm : registry()) {
    if (algorithm->one_node) continue;
    INFO(name_of(algorithm->collective) << " " << algorithm->name);
    REQUIRE(algorithm->call_ns != nullptr);
    for (const auto& [nodes, node_ranks] : {std::pair{2, 1}, {2, 16}, {5, 3}, {64, 1}, {1024, 16}}) {
      const int ranks = nodes * node_ranks;
      double before = 0;
      for (std::uint64_t bytes = algorithm->collective == Collective::barrier ? 0 : 8; bytes <= 16 << 20; bytes *= 8) {
        const MessageTimes times;
        const auto size = static_cast<double>(bytes);
        const double ns = algorithm->call_ns({.nodes = static_cast<double>(nodes),
                                              .ranks = static_cast<double>(ranks),
                                              .node_ranks = static_cast<double>(node_ranks),
                                              .latency_ns = times.ns(0),
                                              .message_ns = times.ns(size),
                                              .bytes = size});
        INFO(nodes << " nodes of " << node_ranks << ", " << bytes << " bytes: " << ns);
        // No message comes before its latency. A longer one may go another way, and be quicker.
        CHECK(ns >= times.ns(0));
        CHECK(ns < 1e15);
        CHECK(ns > before / 4);
        before = ns;
        if (bytes == 0) break;
      }
    }
  }
}

}  // namespace

TEST_CASE("a name, native, auto") {
  CHECK(choose("arrival_leader", 8).rule->algorithm->name == "arrival_leader");
  CHECK(choose("arrival_leader", 8).forced);
  CHECK(choose("native", 8).rule == nullptr);
  CHECK(choose("native", 8).reason == Reason::selected);
  CHECK(choose("auto", 8).rule != nullptr);
  CHECK_FALSE(choose("auto", 8).forced);
  CHECK(choose("auto", 65536).rule->algorithm->name == "arrival_leader");
  CHECK(choose("auto", 65537).rule->algorithm->name == "arrival_tree");
  CHECK(choose("auto", 8, {1000, 1}).reason == Reason::table);
}

TEST_CASE("what auto takes on one node, as measured") {
  struct Row {
    Collective collective;
    std::string_view algorithm;
    int most_ranks;
    std::uint64_t lowest_bytes;
    std::uint64_t highest_bytes;
  };
  constexpr std::uint64_t any_size = std::uint64_t{1} << 40;
  const Selection selection;
  for (const Row& row : {Row{Collective::allreduce, "arrival_leader", 128, 1, 65536},
                         Row{Collective::allreduce, "arrival_tree", 64, 65537, any_size},
                         Row{Collective::reduce, "arrival_leader", 64, 1, 65536},
                         Row{Collective::reduce, "arrival_tree", 64, 65537, any_size},
                         Row{Collective::bcast, "arrival_bcast", 64, 1, any_size},
                         Row{Collective::gather, "arrival_gather", 64, 512, any_size},
                         Row{Collective::scatter, "arrival_scatter", 64, 512, any_size},
                         Row{Collective::allgather, "arrival_allgather", 32, 1, any_size},
                         Row{Collective::alltoall, "arrival_alltoall", 32, 1, any_size},
                         Row{Collective::reduce_scatter, "arrival_blocks", 32, 64, any_size},
                         Row{Collective::reduce_scatter_block, "arrival_blocks", 32, 1, any_size},
                         Row{Collective::barrier, "arrival_barrier", 64, 0, 0}}) {
    CAPTURE(name_of(row.collective), row.algorithm);
    for (const std::uint64_t bytes : {row.lowest_bytes, row.highest_bytes}) {
      const Choice choice = selection.choose(row.collective, bytes, {.ranks = row.most_ranks, .nodes = 1});
      REQUIRE(choice.rule != nullptr);
      CHECK(choice.rule->algorithm->name == row.algorithm);
      CHECK(selection.choose(row.collective, bytes, {.ranks = row.most_ranks + 1, .nodes = 1}).rule == nullptr);
    }
    if (row.lowest_bytes == 1) CHECK(selection.choose(row.collective, 0, {.ranks = 2, .nodes = 1}).rule == nullptr);
  }
}

TEST_CASE("where ranks outnumber cores large blocks of an alltoall stay native") {
  const Selection selection;
  const Facts oversubscribed{.ranks = 8, .nodes = 1, .oversubscribed = true};
  const Facts roomy{.ranks = 8, .nodes = 1, .oversubscribed = false};
  CHECK(selection.choose(Collective::alltoall, 1 << 20, roomy).rule != nullptr);
  CHECK(selection.choose(Collective::alltoall, 8, oversubscribed).rule != nullptr);
  CHECK(selection.choose(Collective::alltoall, 1 << 20, oversubscribed).reason == Reason::table);
  CHECK(selection.choose(Collective::bcast, 1 << 20, oversubscribed).rule != nullptr);
  // An MPI that keeps its cores while it waits takes milliseconds for what ours does in microseconds.
  const Facts spinning{.ranks = 8, .nodes = 1, .oversubscribed = true, .native_yields = false};
  CHECK(selection.choose(Collective::alltoall, 1 << 20, spinning).rule != nullptr);
}

TEST_CASE("ranks that know their own sizes only: one algorithm for all sizes, or native") {
  const Facts roomy{.ranks = 4, .nodes = 1, .oversubscribed = false};
  const auto choose_v = [&](const char* text, const Facts& facts) {
    static Selection selection;
    std::string problem;
    REQUIRE(selection.select(Collective::alltoall, text, problem));
    return selection.choose_for_any_size(Collective::alltoall, Collective::alltoallv, facts);
  };
  CHECK(choose_v("auto", roomy).rule->algorithm->name == "arrival_alltoall");
  CHECK_FALSE(choose_v("auto", roomy).forced);
  CHECK(choose_v("auto", {.ranks = 4, .nodes = 1, .oversubscribed = true}).reason == Reason::sizes);
  CHECK(choose_v("auto", {.ranks = 1000, .nodes = 1}).reason == Reason::table);
  CHECK(choose_v("auto", {.ranks = 4, .nodes = 2}).reason == Reason::several_nodes);
  CHECK(choose_v("arrival_alltoall", roomy).forced);
  CHECK(choose_v("arrival_alltoall:single_copy_bytes=1", roomy).rule->values[0] == 1);
  CHECK(choose_v("native", roomy).reason == Reason::selected);
  CHECK(choose_v("0-4K:arrival_alltoall,4K-:native", roomy).reason == Reason::sizes);
  CHECK(choose_v("4K-:arrival_alltoall", roomy).reason == Reason::sizes);
  CHECK(choose_v("0-4K:arrival_alltoall", roomy).reason == Reason::sizes);
  CHECK(choose_v("0-4K:arrival_alltoall,4K-:arrival_alltoall", roomy).rule != nullptr);
  CHECK(choose_v("1-:arrival_alltoall", roomy).rule != nullptr);
  Selection selection;
  std::string problem;
  CHECK_FALSE(selection.select(Collective::allgatherv, "arrival_allgather", problem));
  CHECK_FALSE(selection.select(Collective::alltoallv, "arrival_alltoall", problem));
  CHECK(problem.find("selection for alltoall") != std::string::npos);
}

TEST_CASE("the same text gets the same rules, and rules given out stay") {
  Selection selection;
  std::string problem;
  const Facts facts{4, 1};
  REQUIRE(selection.select(Collective::allreduce, "arrival_tree", problem));
  const Rule* const tree = selection.choose(Collective::allreduce, 8, facts).rule;
  REQUIRE(selection.select(Collective::allreduce, "native", problem));
  CHECK(selection.choose(Collective::allreduce, 8, facts).rule == nullptr);
  CHECK(tree->algorithm->name == "arrival_tree");
  REQUIRE(selection.select(Collective::allreduce, "arrival_tree", problem));
  CHECK(selection.choose(Collective::allreduce, 8, facts).rule == tree);
  CHECK_FALSE(selection.select(Collective::allreduce, "arrival_three", problem));
  CHECK(problem.find("did you mean arrival_tree?") != std::string::npos);
  CHECK(selection.choose(Collective::allreduce, 8, facts).rule == tree);
}

TEST_CASE("an algorithm that follows the arrivals needs the order and a commutative operation") {
  Facts facts{4, 1};
  Selection selection;
  std::string problem;
  REQUIRE(selection.select(Collective::reduce, "arrival_chain", problem));
  CHECK(selection.choose(Collective::reduce, 8, facts).reason == Reason::order);
  facts.may_reorder = true;
  CHECK(selection.choose(Collective::reduce, 8, facts).rule != nullptr);
}

TEST_CASE("an algorithm is not chosen where it cannot run") {
  CHECK(choose("arrival_leader", 65536).rule != nullptr);
  CHECK(choose("arrival_leader", 65537).reason == Reason::too_large);
  CHECK(choose("arrival_leader", 8, {4, 2}).reason == Reason::several_nodes);
}

TEST_CASE("by size, the common bound belongs to the later rule") {
  const char* rules = "0-4K:arrival_leader,4K-:native";
  CHECK(choose(rules, 4095).rule != nullptr);
  CHECK(choose(rules, 4096).reason == Reason::selected);
  CHECK(choose("8-16:arrival_leader", 7).reason == Reason::outside_ranges);
  CHECK(choose("8-16:arrival_leader", 16).rule != nullptr);
}

TEST_CASE("a rule for sizes that earlier rules have taken is a mistake") {
  for (const char* rules :
       {"native,arrival_tree", "0-4K:arrival_leader,0-4K:native", "0-4K:native,1K-2K:arrival_leader",
        "4-8:native,0-4:native,8-16:native,1-12:arrival_leader"})
    CHECK(problem_of(rules).find("would never run") != std::string::npos);
  for (const char* rules : {"4-10:arrival_leader,0-:native", "0-8:native,4-16:arrival_leader",
                            "4-8:native,10-16:native,1-12:arrival_leader"})
    CHECK(choose(rules, 9).rule != nullptr);
}

TEST_CASE("parameters") {
  const Choice choice = choose("arrival_leader:self_serve_bytes=2K", 8);
  REQUIRE(choice.rule != nullptr);
  CHECK(choice.rule->values[0] == 2048);
  CHECK(problem_of("arrival_leader:self_serve_byte=1").find("did you mean self_serve_bytes?") != std::string::npos);
  CHECK(problem_of("arrival_leader:self_serve_bytes=-1").find("must be from") != std::string::npos);
  CHECK(problem_of("arrival_leader:self_serve_bytes=1:x=2").find("not '1:x=2'; commas separate parameters") !=
        std::string::npos);
  CHECK(problem_of("native:x=1").find("no parameter 'x'") != std::string::npos);
}

TEST_CASE("what cannot be used is said with the nearest name") {
  CHECK(problem_of("arival_leader").find("did you mean arrival_leader?") != std::string::npos);
  CHECK(problem_of("4K-0:native").find("4K-0 ends before it begins") != std::string::npos);
  CHECK(problem_of("0-4K").find("LOW-HIGH:NAME") != std::string::npos);
  CHECK(problem_of("arrival_leader:").find("NAME=VALUE") != std::string::npos);
  CHECK_FALSE(problem_of(",").empty());
  CHECK_FALSE(problem_of("arrival_leader,").empty());
  CHECK_FALSE(problem_of("0-4K:").empty());
  CHECK(problem_of("0-4K:auto").find("auto stands alone") != std::string::npos);
}

TEST_CASE("a tuning file, and the environment above it") {
  Settings settings;
  std::vector<std::string> warnings;
  const char* text = "# my machine\nallreduce 0-1K:arrival_leader,1K-:native\nMPI_Bcast native\n\nnonsense\n";
  const Selection selection(settings, text, warnings);
  CHECK(warnings.size() == 1);
  CHECK(selection.choose(Collective::allreduce, 8, four_ranks).rule != nullptr);
  CHECK(selection.choose(Collective::allreduce, 2048, four_ranks).reason == Reason::selected);
  CHECK(selection.choose(Collective::bcast, 8, four_ranks).reason == Reason::selected);
  CHECK(selection.choose(Collective::reduce, 8, four_ranks).rule != nullptr);
  CHECK(selection.choose(Collective::scan, 8, four_ranks).reason == Reason::no_algorithm);
  settings.set(Variable::allreduce, "native");
  const Selection overridden(settings, text, warnings);
  CHECK(overridden.choose(Collective::allreduce, 8, four_ranks).rule == nullptr);
  for (const Variable variable :
       {Variable::reduce, Variable::bcast, Variable::alltoall, Variable::allgather, Variable::barrier, Variable::gather,
        Variable::scatter, Variable::reduce_scatter, Variable::reduce_scatter_block})
    settings.set(variable, "native");
  CHECK_FALSE(Selection(settings, text, warnings).replaces_anything());

  warnings.clear();
  const char* twice = "allreduce rong\nallreduce native\nMPI_Allreduce arrival_tree\n";
  Settings defaults;
  CHECK(Selection(defaults, twice, warnings).choose(Collective::allreduce, 8, four_ranks).reason == Reason::selected);
  REQUIRE(warnings.size() == 2);
  CHECK(warnings[1] == "PAPAYA_TUNING, line 3: allreduce has its selection from line 2; ignored.");
  warnings.clear();
  std::string prose;
  for (int i = 0; i < 99; ++i) prose += "no tuning file\n";
  const Selection none(defaults, prose, warnings);
  CHECK(warnings.size() == Problems::most + 1);
}

TEST_CASE("old names of algorithms and parameters are understood, with one warning") {
  const auto take = [](const std::vector<std::pair<Variable, const char*>>& values, const char* tuning_text,
                       std::vector<std::string>& warnings) {
    Settings settings;
    for (const auto& [variable, value] : values) settings.set(variable, value);
    Selection selection(settings, tuning_text, warnings);
    for (const auto& [variable, value] : values) CHECK(settings.text(variable) == value);
    return selection;
  };
  const Facts nodes{4, 2};
  std::vector<std::string> warnings;
  Selection selection = take({{Variable::allreduce, "0-4K:dissemination:ways=3,4K-:rsa:piece_bytes=64K"},
                              {Variable::iallreduce, "rsa:whole_bytes=1K"},
                              {Variable::ibarrier, "dissemination:ways=2"}},
                             "bcast notified_bcast:piece_bytes=4K\n", warnings);
  CHECK(warnings == std::vector<std::string>{
                        "The selections use old names, which still work; write chunk_bytes for piece_bytes, radix for "
                        "ways, rabenseifner for rsa, recursive_doubling_bytes for whole_bytes."});
  CHECK(selection.choose(Collective::allreduce, 8, nodes).rule->values[0] == 3);
  const Rule* const blocking = selection.choose(Collective::allreduce, 8192, nodes).rule;
  CHECK(blocking->algorithm->name == "rabenseifner");
  CHECK(blocking->values[0] == 65536);
  const Rule* const nonblocking = selection.choose(Collective::allreduce, 8, nodes, Form::nonblocking).rule;
  CHECK(nonblocking->algorithm->name == "rabenseifner");
  CHECK(nonblocking->values[1] == 1024);
  CHECK(selection.choose(Collective::bcast, 8, nodes).rule->values[0] == 4096);
  CHECK(selection.choose(Collective::barrier, 0, nodes, Form::nonblocking).rule->values[0] == 2);

  // As papaya_select does: what was told is told no more.
  std::string problem;
  CHECK(selection.old_names_warning().empty());
  REQUIRE(selection.select(Collective::allreduce, "rsa", problem));
  CHECK(selection.old_names_warning().empty());
  REQUIRE(selection.select(Collective::bcast, "tree_bcast:fanout=2", problem));
  CHECK(selection.old_names_warning().find("write radix for fanout.") != std::string::npos);
  CHECK(selection.old_names_warning().empty());

  warnings.clear();
  take({{Variable::allreduce, "rabenseifner:chunk_bytes=64K"}}, "", warnings);
  CHECK(warnings.empty());
  CHECK(problem_of("rsa:piece_byte=1").find("did you mean chunk_bytes?") == std::string::npos);
  CHECK(problem_of("rsa:piece_bytes=1").find("parameter piece_bytes must be from") != std::string::npos);
}

TEST_CASE("names of collectives") {
  Collective collective{};
  CHECK((collective_of("MPI_Allreduce", collective) && collective == Collective::allreduce));
  CHECK((collective_of("reduce_scatter_block", collective) && collective == Collective::reduce_scatter_block));
  CHECK_FALSE(collective_of("send", collective));
}

TEST_CASE("nonblocking calls have a selection of their own") {
  const auto take = [](Variable variable, const char* value, std::vector<std::string>& warnings) {
    Settings settings;
    settings.set(variable, value);
    Selection selection(settings, "", warnings);
    CHECK(settings.is_default(variable) == !warnings.empty());
    return selection;
  };
  std::vector<std::string> warnings;
  const Selection none = take(Variable::allreduce, "ring", warnings);
  CHECK_FALSE(none.replaces_nonblocking());
  CHECK(none.choose(Collective::allreduce, 8, four_ranks, Form::nonblocking).reason == Reason::no_algorithm);

  const Selection ring = take(Variable::iallreduce, "0-1K:native,1K-:ring:chunk_bytes=4096", warnings);
  CHECK(warnings.empty());
  CHECK(ring.replaces_nonblocking());
  CHECK(ring.works_across_nodes());
  CHECK(ring.choose(Collective::allreduce, 8, four_ranks, Form::nonblocking).reason == Reason::selected);
  const Choice choice = ring.choose(Collective::allreduce, 4096, {4, 3}, Form::nonblocking);
  CHECK(choice.rule->algorithm->name == "ring");
  CHECK(choice.rule->values[0] == 4096);
  CHECK(ring.choose(Collective::allreduce, 4096, {4, 3}).reason == Reason::several_nodes);
  CHECK(ring.choose(Collective::bcast, 4096, four_ranks, Form::nonblocking).reason == Reason::no_algorithm);

  const auto problem = [&](Variable variable, const char* value) {
    std::vector<std::string> said;
    take(variable, value, said);
    return said.size() == 1 ? said[0] : "";
  };
  CHECK(problem(Variable::iallreduce, "arrival_leader") ==
        "PAPAYA_IALLREDUCE=arrival_leader: 'arrival_leader' has no split phase; those of MPI_Allreduce that have one "
        "are: dissemination rabenseifner ring straggler_rsa; using the default, native.");
  CHECK(problem(Variable::iallreduce, "auto") ==
        "PAPAYA_IALLREDUCE=auto: there is no automatic choice for nonblocking calls; name an algorithm; using the "
        "default, native.");
  CHECK(problem(Variable::ibarrier, "disemination").find("did you mean dissemination?") != std::string::npos);
}

}  // namespace papaya::tuning
