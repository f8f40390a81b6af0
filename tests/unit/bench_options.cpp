#include <cstring>
#include <map>

#include "tests/catch.hpp"
#include "tools/bench/launcher.hpp"
#include "tools/bench/options.hpp"
#include "tools/bench/weak_options.hpp"

namespace papaya::bench {

namespace {

using Words = std::vector<std::string>;

Options good(const Words& words) {
  Options options;
  std::string problem;
  CHECK(parse(words, options, problem));
  CHECK(problem == "");
  return options;
}

std::string problem_of(const Words& words) {
  Options options;
  std::string problem;
  CHECK_FALSE(parse(words, options, problem));
  CHECK(problem.find('\n') == std::string::npos);
  return problem;
}

bool says(const Words& words, const char* what) {
  const std::string problem = problem_of(words);
  INFO(problem);
  return problem.find(what) != std::string::npos;
}

std::map<std::string, std::string> environment;
const char* get(const char* name) {
  const auto place = environment.find(name);
  return place == environment.end() ? nullptr : place->second.c_str();
}

}  // namespace

TEST_CASE("what is measured without options") {
  const Options options = good({"allreduce"});
  CHECK(options.operations == std::vector<Operation>{{Collective::allreduce}});
  CHECK(options.sizes == std::vector<std::size_t>{8, 64, 512, 4096, 32768, 262144, 1 << 20});
  CHECK(options.rounds == 20);
  CHECK(good({"allreduce", "-i", "8"}).rounds == 10);
  CHECK(options.mode == Mode::tight);
  CHECK(good({"all"}).operations.size() == 10);
  CHECK(good({"MPI_Bcast"}).operations.front() == Operation{Collective::bcast});
  CHECK(good({"kernels"}).kernels);
  CHECK(good({"kernels", "--json", "a.json", "--csv", "a.csv"}).kernels);
}

TEST_CASE("message sizes of the benchmark") {
  using Sizes = std::vector<std::size_t>;
  CHECK(good({"bcast", "-m", "64"}).sizes == Sizes{64});
  CHECK(good({"bcast", "-m", "3:20"}).sizes == Sizes{3, 6, 12, 20});
  CHECK(good({"bcast", "-m", "1K:4K"}).sizes == Sizes{1024, 2048, 4096});
  CHECK(good({"bcast", "-m", "1:64:4"}).sizes == Sizes{1, 4, 16, 64});
  CHECK(good({"bcast", "-m", "1:9:1G"}).sizes == Sizes{1, 9});
  CHECK(says({"bcast", "-m", "1:64:1"}, "FACTOR"));
  CHECK(says({"bcast", "-m", "4K:8"}, "the smaller first"));
  CHECK(says({"bcast", "-m", "x:8"}, "MIN:MAX"));
  CHECK(says({"bcast", "-m", "0:8"}, "from 1 byte"));
  CHECK(says({"bcast", "-m", "8:64G"}, "1 GiB"));
  CHECK(says({"allreduce", "-m", "4:8"}, "multiple of 8"));
}

TEST_CASE("patterns, skew and mode") {
  CHECK(good({"bcast", "--pattern", "random"}).mode == Mode::deadline);
  CHECK(good({"bcast", "--pattern", "random"}).mif == 20);
  CHECK(good({"bcast", "--pattern", "straggler", "--skew", "100"}).skew_us == 100);
  CHECK(good({"bcast", "--pattern", "replay:a.txt"}).replay_file == "a.txt");
  CHECK(good({"bcast", "--mode", "deadline"}).pattern == Pattern::none);
  CHECK(good({"bcast", "--mode", "imbalanced", "--mif", "50"}).mif == 50);
  CHECK(says({"bcast", "--pattern", "randm"}, "did you mean random?"));
  CHECK(says({"bcast", "--pattern", "replay"}, "replay:FILE"));
  CHECK(says({"bcast", "--mode", "tigt"}, "did you mean tight?"));
  CHECK(says({"bcast", "--mode", "tight", "--pattern", "random"}, "--mode deadline"));
  CHECK(says({"bcast", "--skew", "5"}, "there is none"));
  CHECK(says({"bcast", "--pattern", "random", "--skew", "5", "--mif", "5"}, "one of them"));
  CHECK(says({"bcast", "--pattern", "replay:a", "--mif", "5"}, "own times"));
  CHECK(says({"bcast", "--mode", "imbalanced", "--skew", "5"}, "--mif"));
}

TEST_CASE("what only MPI has, and nonblocking collectives") {
  CHECK(good({"gatherv"}).operations.front() == Operation{Collective::gatherv});
  const Options nonblocking = good({"MPI_Ireduce_scatter_block", "--tests", "3"});
  CHECK(nonblocking.operations.front() == Operation{Collective::reduce_scatter_block, Form::nonblocking});
  CHECK(nonblocking.mode == Mode::balanced);
  CHECK(nonblocking.tests == 3);
  CHECK(good({"alltoallv", "--algorithms", "notified_alltoall,auto"}).algorithms.size() == 2);
  CHECK(good({"gather", "--algorithms", "native"}).algorithms.size() == 1);
  CHECK(says({"gatherv", "--algorithms", "auto"}, "only native is measured"));
  CHECK(says({"iallreduce", "--algorithms", "ring"}, "PAPAYA_IALLREDUCE"));
  CHECK(good({"iallreduce", "--pattern", "random"}).mode == Mode::deadline);
  CHECK(says({"iallreduce", "--mode", "tight"}, "take balanced or, with a --pattern, deadline"));
  CHECK(says({"ireduce_scatter", "-m", "4"}, "multiple of 8"));
  CHECK(benchmarked().size() == 28);
  CHECK(good({"gather,scatterv"}).operations == std::vector<Operation>{{Collective::gather}, {Collective::scatterv}});
  CHECK(says({"gather,iscatterv"}, "launches of their own"));
  CHECK(says({"gather,scaterv"}, "did you mean scatterv?"));
}

TEST_CASE("what combines launches measures nothing") {
  CHECK(good({"--combine", "a.json", "b.json", "--json", "c.json"}).combine == Words{"a.json", "b.json"});
  CHECK(says({"--combine", "a.json"}, "at least two launches"));
  CHECK(says({"--combine", "a.json", "b.json", "-m", "8"}, "-m is for a measurement"));
  CHECK(says({"allreduce", "--combine", "a.json", "b.json"}, "allreduce is for a measurement"));
}

TEST_CASE("algorithms of the benchmark") {
  CHECK(good({"allreduce", "--algorithms", "arrival_leader,auto"}).algorithms == Words{"arrival_leader", "auto"});
  CHECK(good({"allreduce", "--algorithms", "arrival_leader:self_serve_bytes=0"}).algorithms ==
        Words{"arrival_leader:self_serve_bytes=0"});
  CHECK(good({"allreduce", "--algorithms", "rsa:piece_bytes=64K"}).algorithms == Words{"rsa:piece_bytes=64K"});
  CHECK(says({"allreduce", "--algorithms", "arival_leader"}, "did you mean arrival_leader?"));
  CHECK(says({"allreduce", "--algorithms", "arrival_leader:x=1"}, "no parameter"));
}

TEST_CASE("weakly consistent collectives and what bounds them") {
  const Options ssp = good({"ssp_allreduce", "--compute", "100", "--pattern", "workers", "--slack", "0,3"});
  CHECK(ssp.weak == WeakCollective::ssp_allreduce);
  CHECK(ssp.operations.empty());
  CHECK(ssp.mode == Mode::free);
  CHECK(ssp.skew_us == 100);
  CHECK(ssp.slacks == std::vector<int>{0, 3});
  const std::vector<WeakCandidate> candidates = weak_candidates(ssp);
  CHECK(candidates.front().selection == "native");
  CHECK(candidates.size() % 2 == 1);
  CHECK(candidates[1].slack == 0);
  CHECK(candidates[2].slack == 3);
  CHECK(good({"ssp_allreduce", "--compute", "9"}).mode == Mode::free);
  CHECK(good({"ssp_allreduce"}).mode == Mode::balanced);
  const Options bcast = good({"threshold_bcast", "--threshold", "0.25,1", "--of", "ranks"});
  CHECK(bcast.of_ranks);
  CHECK(weak_candidates(bcast).size() == 3);
  CHECK(weak_candidates(bcast)[1].share == 0.25);
  CHECK(good({"sparse_allreduce", "--share", "0.5"}).shares == std::vector<double>{0.5});
  for (const WeakCollective one : weak_benchmarked()) {
    CHECK(weak_candidates(good({std::string(name_of(one))})).size() > 1);
    CHECK(weak_candidates(good({std::string(name_of(one)), "--algorithms", "native"})).size() == 1);
  }
  CHECK(says({"ssp_allreduce", "--threshold", "0.5"}, "--threshold does not bound ssp_allreduce"));
  CHECK(says({"threshold_bcast", "--slack", "1"}, "--slack does not bound"));
  CHECK(says({"threshold_bcast", "--threshold", "25"}, "above 0 and at most 1"));
  CHECK(says({"threshold_bcast", "--threshold", "0"}, "above 0 and at most 1"));
  CHECK(says({"threshold_bcast", "--of", "nodes"}, "nodes"));
  CHECK(says({"sparse_allreduce", "--share", "0"}, "above 0 and at most 1"));
  CHECK(says({"ssp_allreduce", "-m", "12"}, "multiple of 8"));
  CHECK(says({"ssp_allreduce", "--algorithms", "ssp_hyprcube"}, "did you mean ssp_hypercube?"));
  CHECK(says({"ssp_allreduce", "--mode", "tight"}, "take free or balanced"));
  CHECK(says({"ssp_allreduce", "--mode", "balanced", "--compute", "5"}, "--mode free"));
  CHECK(says({"ssp_allreduce", "--mode", "balanced", "--pattern", "random"}, "--mode free"));
  CHECK(says({"ssp_alreduce"}, "did you mean ssp_allreduce?"));
  CHECK(says({"allreduce", "--slack", "1"}, "--slack is for weakly consistent collectives"));
  CHECK(says({"allreduce", "--compute", "1"}, "--compute is for weakly consistent collectives"));
  CHECK(says({"allreduce", "--mode", "free"}, "keep the ranks together"));
  CHECK(says({"kernels", "--share", "0.1"}, "--share is for collectives"));
}

TEST_CASE("wrong usage is one sentence") {
  CHECK(says({}, "COLLECTIVE is required"));
  CHECK(says({"alreduce"}, "did you mean allreduce?"));
  CHECK(says({"scan"}, "that can be measured"));
  CHECK(says({"threshold_bcast,threshold_reduce"}, "'threshold_bcast' is measured in a launch of its own"));
  CHECK(says({"bcast,kernels"}, "'kernels' is measured in a launch of its own"));
  CHECK_FALSE(problem_of({"bcast", "--nonsense"}).empty());
  CHECK_FALSE(problem_of({"bcast", "-i", "0"}).empty());
  CHECK_FALSE(problem_of({"bcast", "-i", "many"}).empty());
  CHECK_FALSE(problem_of({"bcast", "--root", "-1"}).empty());
  CHECK_FALSE(problem_of({"bcast", "--mpi", "lam"}).empty());
  CHECK(says({"all", "--plot", "a.svg"}, "one collective"));
  CHECK(says({"barrier", "--plot", "a.svg"}, "message sizes"));
  CHECK(says({"kernels", "--plot", "a.svg"}, "--json"));
  CHECK(says({"kernels", "-m", "64"}, "-m is for collectives"));
  CHECK(says({"kernels", "--mif", "0"}, "--mif is for collectives"));
}

TEST_CASE("the launcher, by its environment") {
  environment = {};
  CHECK(launcher_of(get) == "");
  CHECK(rank_of(get) == 0);
  environment = {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}, {"PMIX_RANK", "3"}};
  CHECK(launcher_of(get) == "openmpi");
  CHECK(rank_of(get) == 3);
  environment = {{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}};
  CHECK(launcher_of(get) == "mpich");
  CHECK(rank_of(get) == 2);
  environment = {{"PMIX_RANK", "1"}};
  CHECK(launcher_of(get) == "pmix");
  CHECK(rank_of(get) == 1);
}

}  // namespace papaya::bench
