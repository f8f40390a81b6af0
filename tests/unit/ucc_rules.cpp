#include "tools/ucc_rules.hpp"

#include "tests/catch.hpp"

namespace papaya {

namespace {

std::string text_of(const std::string& rules, const ExportFacts& facts = {}) {
  std::vector<std::string> warnings;
  const tuning::TuningFile file = tuning::read_tuning_file(R"({"version": 1, "rules": [)" + rules + "]}", warnings);
  CHECK(warnings == std::vector<std::string>{});
  return ucc_rules(file, facts);
}

}  // namespace

TEST_CASE("rules for UCC: ranges of sizes and ranks, and a variable for each component") {
  CHECK(text_of(R"(
      {"collective": "allreduce", "ranks": [4, 8], "bytes": [null, "4K"], "algorithm": "native",
       "parameters": {"ucc": "tl/ucp:knomial"}},
      {"collective": "allreduce", "ranks": [4, null], "bytes": ["8K", null], "algorithm": "native",
       "parameters": {"ucc": "cl/hier:rab"}},
      {"collective": "bcast", "bytes": [1, 1000], "algorithm": "native", "parameters": {"ucc": "tl/ucp:dbt"}},
      {"collective": "bcast", "bytes": [1001, null], "algorithm": "native",
       "parameters": {"ucc": "tl/ucp:sag_knomial"}},
      {"collective": "barrier", "algorithm": "native", "parameters": {"ucc": "tl/ucp:knomial"}})") ==
        "UCC_CLS=basic,hier\n"
        "UCC_CL_HIER_TUNE=allreduce:8192-inf:host:[4-8]:inf:@rab#allreduce:8192-inf:host:[9-inf]:inf:@rab\n"
        "UCC_TL_UCP_TUNE=barrier:host:inf:@knomial#bcast:1-1001:host:inf:@dbt#bcast:1001-inf:host:inf:@sag_knomial"
        "#allreduce:0-4096:host:[4-8]:inf:@knomial\n");
}

TEST_CASE("rules for UCC: of alltoall and allgather it counts the blocks of all ranks") {
  CHECK(text_of(R"({"collective": "allgather", "ranks": [2, 3], "bytes": [100, 200], "algorithm": "native",
                    "parameters": {"ucc": "tl/ucp:ring"}})") ==
        "UCC_TL_UCP_TUNE=allgather:200-401:host:[2-2]:inf:@ring#allgather:300-602:host:[3-3]:inf:@ring\n");
  CHECK(
      text_of(R"({"collective": "reduce", "bytes": 64, "algorithm": "native", "parameters": {"ucc": "tl/ucp:srg"}})") ==
      "UCC_TL_UCP_TUNE=reduce:64-65:host:inf:@srg\n");
  CHECK(text_of(R"({"collective": "reduce", "algorithm": "native", "parameters": {"mpich": "smp"}})").empty());
}

}  // namespace papaya
