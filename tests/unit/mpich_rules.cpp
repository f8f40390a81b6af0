#include "tools/mpich_rules.hpp"

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"

namespace papaya {

namespace {

using Json = nlohmann::ordered_json;

tuning::TuningFile file_of(const std::string& rules) {
  std::vector<std::string> warnings;
  tuning::TuningFile file = tuning::read_tuning_file(R"({"version": 1, "rules": [)" + rules + "]}", warnings);
  CHECK(warnings == std::vector<std::string>{});
  return file;
}

std::string library() {
  std::string text = R"(x{"collective=)";
  text += '\0';
  text += R"({"collective=bcast":{"comm_type=intra":{"composition=MPIDI_Bcast_intra_composition_alpha":{}}},)"
          R"("collective=alltoall":{"comm_type=intra":{"composition=MPIDI_Alltoall_intra_composition_alpha":{}}}})";
  text += '\0';
  text +=
      R"({"collective=bcast":{"comm_type=intra":{"algorithm=MPIR_Bcast_intra_binomial":{}},"comm_type=inter":{"algorithm=MPIR_Bcast_inter_x":{}}},)"
      R"("collective=allreduce":{"comm_type=intra":{"algorithm=MPIR_Allreduce_intra_recursive_doubling":{}}},)"
      R"("collective=allgather":{"comm_type=intra":{"algorithm=MPIR_Allgather_intra_ring":{}}},)"
      R"("collective=barrier":{"comm_type=intra":{"algorithm=MPIR_Barrier_intra_dissemination":{}}},)"
      R"("collective=alltoall":{"comm_type=intra":{"is_sendbuf_inplace=yes":{"algorithm=MPIR_Alltoall_intra_x":{}},)"
      R"("is_sendbuf_inplace=no":{"algorithm=MPIR_Alltoall_intra_pairwise":{}}}}})";
  text += '\0';
  for (const char* const name :
       {"algorithm=MPIR_Bcast_intra_scatter_recursive_doubling_allgather", "algorithm=MPIR_Barrier_allcomm_nb",
        "algorithm=MPIR_Allreduce_intra_reduce_scatter_allgather", "algorithm=MPIR_Allreduce_intra_smp",
        "algorithm=MPIR_Allgather_intra_brucks", "algorithm=MPIR_Alltoall_intra_brucks",
        "composition=MPIDI_Bcast_intra_composition_gamma"}) {
    text += name;
    text += '\0';
  }
  return text;
}

std::string written(const std::string& rules, MpichTree which, std::string& problem) {
  return mpich_rules(file_of(rules), {}, which, library(), problem);
}

Json tree_of(const std::string& rules, MpichTree which = MpichTree::algorithms) {
  std::string problem;
  const std::string text = written(rules, which, problem);
  CHECK(problem.empty());
  CHECK(text.size() % 4096 != 0);
  return Json::parse(text);
}

}  // namespace

TEST_CASE(
    "MPICH's tree: what rules do not speak of is as in its library, and algorithms get only what they can serve") {
  const Json own = Json::parse(tree_inside(library(), MpichTree::algorithms));
  const Json usual = own["collective=bcast"]["comm_type=intra"];
  Json tree = tree_of(R"({"collective": "bcast", "ranks": [4, 8], "bytes": [100, "4K"], "algorithm": "native",
                          "parameters": {"mpich": "scatter_recursive_doubling_allgather"}})");
  const Json chosen = {
      {"comm_size=pow2", {{"algorithm=MPIR_Bcast_intra_scatter_recursive_doubling_allgather", Json::object()}}},
      {"comm_size=any", usual}};
  const Json sizes = {{"avg_msg_size<=99", usual}, {"avg_msg_size<=4096", chosen}, {"avg_msg_size=any", usual}};
  CHECK(tree["collective=bcast"]["comm_type=intra"].dump() ==
        Json({{"comm_size<=3", usual}, {"comm_size<=8", sizes}, {"comm_size=any", usual}}).dump());
  tree["collective=bcast"]["comm_type=intra"] = usual;
  CHECK(tree.dump() == own.dump());
}

TEST_CASE("MPICH's tree: operations, barriers, blocks of all ranks, and MPI_IN_PLACE") {
  const Json tree = tree_of(R"(
      {"collective": "allreduce", "bytes": ["1M", null], "algorithm": "native",
       "parameters": {"mpich": "reduce_scatter_allgather"}},
      {"collective": "allreduce", "algorithm": "native", "parameters": {"mpich": "smp"}},
      {"collective": "barrier", "bytes": 0, "algorithm": "native", "parameters": {"mpich": "nb"}},
      {"collective": "allgather", "ranks": 3, "bytes": [null, 1000], "algorithm": "native",
       "parameters": {"mpich": "brucks"}},
      {"collective": "alltoall", "bytes": [null, "4G"], "algorithm": "native", "parameters": {"mpich": "brucks"}})");
  const Json recursive = {{"algorithm=MPIR_Allreduce_intra_recursive_doubling", Json::object()}};
  const auto leaf = [](const char* name) { return Json{{name, Json::object()}}; };
  CHECK(
      tree["collective=allreduce"]["comm_type=intra"]["comm_size=any"].dump() ==
      Json({{"avg_msg_size<=1048575",
             {{"comm_hierarchy=parent",
               {{"is_commutative=yes", leaf("algorithm=MPIR_Allreduce_intra_smp")}, {"is_commutative=no", recursive}}},
              {"comm_hierarchy=any", recursive}}},
            {"avg_msg_size=any",
             {{"is_op_built_in=yes",
               {{"count<pow2", recursive},
                {"count=any", leaf("algorithm=MPIR_Allreduce_intra_reduce_scatter_allgather")}}},
              {"is_op_built_in=no", recursive}}}})
          .dump());
  CHECK(tree["collective=barrier"]["comm_type=intra"]["comm_size=any"] == leaf("algorithm=MPIR_Barrier_allcomm_nb"));
  CHECK(tree["collective=allgather"]["comm_type=intra"]["comm_size<=3"].dump() ==
        Json({{"total_msg_size<=3002", leaf("algorithm=MPIR_Allgather_intra_brucks")},
              {"total_msg_size=any", leaf("algorithm=MPIR_Allgather_intra_ring")}})
            .dump());
  CHECK(tree["collective=alltoall"]["comm_type=intra"]["is_sendbuf_inplace=yes"] ==
        leaf("algorithm=MPIR_Alltoall_intra_x"));
  CHECK(tree["collective=alltoall"]["comm_type=intra"]["is_sendbuf_inplace=no"]["comm_size=any"] ==
        leaf("algorithm=MPIR_Alltoall_intra_brucks"));
}

TEST_CASE("MPICH's tree: the device leaves to its algorithms what rules name one for") {
  const Json tree = tree_of(R"({"collective": "bcast", "bytes": [null, 64], "algorithm": "native",
                                "parameters": {"mpich": "binomial"}},
                               {"collective": "alltoall", "algorithm": "native", "parameters": {"mpich": "nb"}})",
                            MpichTree::device);
  const Json own = Json::parse(tree_inside(library(), MpichTree::device));
  CHECK(tree["collective=bcast"]["comm_type=intra"]["comm_size=any"].dump() ==
        Json({{"avg_msg_size<=64", {{"composition=MPIDI_Bcast_intra_composition_gamma", Json::object()}}},
              {"avg_msg_size=any", own["collective=bcast"]["comm_type=intra"]}})
            .dump());
  CHECK(tree["collective=alltoall"] == own["collective=alltoall"]);
}

TEST_CASE("MPICH's tree: what cannot be written is said") {
  const auto problem_of = [](const std::string& rules, MpichTree which = MpichTree::algorithms) {
    std::string problem;
    CHECK(written(rules, which, problem).empty());
    return problem;
  };
  const std::string pipeline =
      R"({"collective": "bcast", "algorithm": "native", "parameters": {"openmpi": "pipeline"}})";
  CHECK(problem_of(pipeline).empty());
  CHECK(problem_of(R"({"collective": "bcast", "algorithm": "native", "parameters": {"mpich": "smp"}})") ==
        "this MPICH knows no algorithm=MPIR_Bcast_intra_smp.");
  CHECK(problem_of(R"({"collective": "barrier", "algorithm": "native", "parameters": {"mpich": "nb"}})",
                   MpichTree::device) == "this MPICH knows no composition=MPIDI_Barrier_intra_composition_beta.");
  std::string problem;
  const std::string other = R"({"collective=bcast":{"algorithm=X":{}}})";
  CHECK(mpich_rules(file_of(R"({"collective": "bcast", "algorithm": "native", "parameters": {"mpich": "smp"}})"), {},
                    MpichTree::algorithms, other, problem)
            .empty());
  CHECK(problem == "there is no tree of MPICH 4 in its library.");
}

TEST_CASE("MPICH's algorithms have numbers, by what MPI_T says of their variable") {
  const std::string description =
      "Variable to select allreduce algorithmauto - Internal algorithm selectionnb   - Force nonblocking algorithm"
      "k_ring - Force k ring algorithmring                     - Force ring algorithmsmp - Force smp algorithm";
  CHECK(tuning::mpich_number(description, "nb") == 1);
  CHECK(tuning::mpich_number(description, "ring") == 3);
  CHECK(tuning::mpich_number(description, "smp") == 4);
  CHECK(tuning::mpich_number(description, "tree") == -1);
}

}  // namespace papaya
