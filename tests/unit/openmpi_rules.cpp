#include "tools/openmpi_rules.hpp"

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tuning/native_algorithms.hpp"

namespace papaya {

namespace {

tuning::TuningFile file_of(const std::string& rules) {
  std::vector<std::string> warnings;
  tuning::TuningFile file = tuning::read_tuning_file(R"({"version": 1, "rules": [)" + rules + "]}", warnings);
  CHECK(warnings == std::vector<std::string>{});
  return file;
}

std::string text_of(const std::string& rules, const ExportFacts& facts = {}) {
  return openmpi_rules(file_of(rules), facts, OpenMpiFormat::text);
}

}  // namespace

TEST_CASE("rules for Open MPI: sizes and ranks that no rule names one for are its own") {
  CHECK(text_of(R"(
      {"collective": "allreduce", "ranks": [4, 8], "bytes": [null, "4K"], "algorithm": "native",
       "parameters": {"openmpi": "recursive_doubling"}},
      {"collective": "allreduce", "ranks": [4, null], "bytes": ["64K", "1M"], "algorithm": "native",
       "parameters": {"openmpi": "segmented_ring", "fanout": 2, "segment_bytes": "32K"}},
      {"collective": "barrier", "algorithm": "native"})") ==
        "1  # collectives, written by papaya export\n"
        "2  # Allreduce\n"
        "3  # communicator sizes\n"
        "1  # ranks or more\n1  # message sizes\n"
        "0 0 0 0  # Open MPI's own choice\n"
        "4  # ranks or more\n4  # message sizes\n"
        "0 3 0 0  # recursive_doubling\n"
        "4097 0 0 0  # Open MPI's own choice\n"
        "65536 5 2 32768  # segmented_ring\n"
        "1048577 0 0 0  # Open MPI's own choice\n"
        "9  # ranks or more\n3  # message sizes\n"
        "0 0 0 0  # Open MPI's own choice\n"
        "65536 5 2 32768  # segmented_ring\n"
        "1048577 0 0 0  # Open MPI's own choice\n");
}

TEST_CASE("rules for Open MPI: what comes first in the file, but for papaya's algorithms") {
  const std::string rules = R"(
      {"collective": "bcast", "bytes": [null, 100], "algorithm": "tree_bcast"},
      {"collective": "bcast", "arrivals": "random", "algorithm": "native", "parameters": {"openmpi": "pipeline"}},
      {"collective": "bcast", "nodes": 2, "ranks_per_node": [3, 4], "algorithm": "native",
       "parameters": {"openmpi": "chain"}},
      {"collective": "bcast", "nodes": [3, null], "oversubscribed": true, "algorithm": "native",
       "parameters": {"openmpi": "knomial"}})";
  CHECK(text_of(rules).empty());
  const std::string random = text_of(rules, {.arrivals = tuning::ArrivalClass::random});
  CHECK(random.find("0 3 0 0  # pipeline\n") != random.npos);
  // Three of five ranks are on the fullest of two nodes, four of eight.
  const std::string nodes = text_of(rules, {.nodes = 2});
  CHECK(nodes.find("5  # ranks or more\n1  # message sizes\n0 2 0 0  # chain\n9  # ranks or more\n1  # message sizes\n"
                   "0 0 0 0") != nodes.npos);
  CHECK(text_of(rules, {.nodes = 3}).empty());
  CHECK(text_of(rules, {.nodes = 3, .oversubscribed = true}).find("0 7 0 0  # knomial\n") != std::string::npos);
}

TEST_CASE("rules for Open MPI: of alltoall and allgather it counts the blocks of all ranks") {
  const std::string text = text_of(R"({"collective": "allgather", "ranks": [2, 3], "bytes": [1000, null],
                                       "algorithm": "native", "parameters": {"openmpi": "bruck"}})");
  CHECK(text.find("2  # ranks or more\n2  # message sizes\n0 0 0 0  # Open MPI's own choice\n2000 2 0 0  # bruck\n"
                  "3  # ranks or more\n2  # message sizes\n0 0 0 0  # Open MPI's own choice\n3000 2 0 0  # bruck\n"
                  "4  # ranks or more\n1  # message sizes\n0 0 0 0") != text.npos);
  const std::string open = text_of(R"({"collective": "alltoall", "bytes": [1000, null], "algorithm": "native",
                                       "parameters": {"openmpi": "pairwise"}})");
  CHECK(open.find("1024  # ranks or more\n2  # message sizes\n0 0 0 0  # Open MPI's own choice\n1024000 2") !=
        open.npos);
  CHECK(open.find("1025  # ranks or more\n1  # message sizes\n0 0 0 0") != open.npos);
}

TEST_CASE("rules for Open MPI 6 have names, and ranges that do not overlap") {
  const std::string text = openmpi_rules(file_of(R"(
      {"collective": "reduce", "ranks": [4, 8], "bytes": [1, "4K"], "algorithm": "native",
       "parameters": {"openmpi": "chain", "fanout": 3, "segment_bytes": 512}},
      {"collective": "reduce", "bytes": ["1M", null], "algorithm": "native", "parameters": {"openmpi": "binary"}})"),
                                         {}, OpenMpiFormat::json);
  const nlohmann::json rules = nlohmann::json::parse(text);
  CHECK(rules["rule_file_version"] == 3);
  CHECK(rules["module"] == "tuned");
  const nlohmann::json large = {{"msg_size_min", 1 << 20}, {"alg", "binary"}};
  CHECK(rules["collectives"] ==
        nlohmann::json{
            {"reduce",
             {{{"comm_size_min", 1}, {"comm_size_max", 3}, {"rules", {large}}},
              {{"comm_size_min", 4},
               {"comm_size_max", 8},
               {"rules",
                {{{"msg_size_min", 1}, {"msg_size_max", 4096}, {"alg", "chain"}, {"faninout", 3}, {"seg_size", 512}},
                 large}}},
              {{"comm_size_min", 9}, {"rules", {large}}}}}});
}

TEST_CASE("rules for Open MPI: a collective has a number where it has algorithms") {
  for (std::size_t i = 0; i < collective_count; ++i) {
    const auto collective = static_cast<Collective>(i);
    INFO(name_of(collective));
    CHECK(tuning::openmpi_number(collective).has_value() == !tuning::openmpi_algorithms(collective).empty());
    CHECK_FALSE(tuning::openmpi_library.find(collective, "none of them").has_value());
  }
  CHECK(tuning::openmpi_library.find(Collective::reduce, "binomial") == std::size_t{5});
}

}  // namespace papaya
