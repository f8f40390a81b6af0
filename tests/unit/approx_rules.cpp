#include "tuning/approx_rules.hpp"

#include <random>

#include "tests/catch.hpp"
#include "tuning/named_site.hpp"

using namespace papaya;
using tuning::ApproxRule;

namespace {

std::vector<ApproxRule> good(std::string_view text) {
  std::vector<ApproxRule> rules;
  std::string problem;
  CHECK(tuning::parse_approx(text, weak_registry(), rules, problem));
  CHECK(problem == "");
  return rules;
}

std::string problem_of(std::string_view text) {
  std::vector<ApproxRule> rules;
  std::string problem;
  CHECK_FALSE(tuning::parse_approx(text, weak_registry(), rules, problem));
  return problem;
}

bool says(std::string_view text, std::string_view what) {
  return problem_of(text).find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("rules of PAPAYA_APPROX") {
  const auto rules = good(
      "allreduce@gradients|\"a,b=c@d:7\"=ssp_sharded:slack=2,consistent=1, MPI_Bcast@solve.c:88|main (app)|app+0x1f="
      "threshold_bcast:threshold=0.25,reduce@MPI COMMUNICATOR 3=threshold_reduce:cycle=2,threshold=1");
  REQUIRE(rules.size() == 3);
  CHECK(rules[0].names == std::vector<std::string>{"gradients", "a,b=c@d:7"});
  CHECK(rules[0].selection() == "ssp_sharded:slack=2,consistent=1,thread=0,shard_bytes=4096");
  CHECK(rules[0].places() == "communicators \"gradients\", \"a,b=c@d:7\"");
  CHECK(rules[0].bound() == "ssp_sharded, slack 2, consistent 1");
  CHECK(rules[1].collective == Collective::bcast);
  CHECK(rules[1].sites == std::vector<std::string>{"solve.c:88", "main (app)", "app+0x1f"});
  CHECK(rules[1].threshold == 0.25);
  CHECK(rules[1].places() == "call sites solve.c:88, main (app), app+0x1f");
  CHECK(rules[2].names == std::vector<std::string>{"MPI COMMUNICATOR 3"});
  CHECK(rules[2].cycle == 2);
  CHECK(rules[2].bound() == "threshold_reduce, threshold 1, cycle 2");
}

TEST_CASE("what is wrong with PAPAYA_APPROX") {
  CHECK(says("bad-value!", "is not COLLECTIVE@PLACE=NAME"));
  CHECK(says("alltoall@x=ssp_ring", "none of allreduce, reduce and bcast"));
  CHECK(says("allreduce@x=ssp_rng", "did you mean ssp_ring?"));
  CHECK(says("bcast@x=ssp_ring", "there is threshold_bcast"));
  CHECK(says("allreduce@x=ssp_ring:slak=2", "did you mean slack?"));
  CHECK(says("allreduce@x=ssp_ring:slack=-2", "slack must be from 0 to"));
  CHECK(says("allreduce@x=ssp_ring:threshold=0.5", "has no parameter 'threshold'"));
  CHECK(says("bcast@x=threshold_bcast:threshold=0", "above 0 and at most 1"));
  CHECK(says("bcast@x=threshold_bcast:threshold=nan", "above 0 and at most 1"));
  CHECK(says("allreduce@x=ssp_ring:cycle=0", "cycle must be from 1 to 64"));
  CHECK(says("allreduce@=ssp_ring", "after the @"));
  CHECK(says("allreduce@x=", "the rule 'allreduce@x=' names no algorithm"));
  CHECK(says("allreduce@x=ssp_ring,allreduce@y|x=top_k", "two rules are for MPI_Allreduce on \"x\""));
  CHECK(says("allreduce@a.c:1=ssp_ring,allreduce@b.c:2=top_k", "a.c:10|a.c:20"));
}

TEST_CASE("a call site by any of its names") {
  const tuning::NamedSite whole{"app", 0x1f, "main", "solve.c", 88};
  for (const char* place : {"solve.c:88", "main (solve.c:88)", "app+0x1f"}) CHECK(tuning::is_site(place, whole));
  for (const char* place : {"solve.c:8", "main (app)", "app+0x1", "app", ""})
    CHECK_FALSE(tuning::is_site(place, whole));
  CHECK(tuning::is_site("main (app)", {"app", 0x1f, "main", "", 0}));
  CHECK_FALSE(tuning::is_site(":0", {"", 0, "", "", 0}));
}

TEST_CASE("any text as PAPAYA_APPROX is taken or refused with a sentence") {
  std::mt19937 random(1);
  const std::string_view seed =
      "allreduce@gradients|\"x\"=ssp_sharded:slack=2,cycle=3,bcast@a.c:88=threshold_bcast:threshold=0.25";
  for (int round = 0; round < 20000; ++round) {
    std::string text(seed);
    for (unsigned change = random() % 4 + 1; change > 0; --change) {
      const std::size_t at = random() % text.size();
      constexpr std::string_view marks = "@|=:,\"() +0x19\n";
      if (random() % 2 == 0)
        text[at] = random() % 8 == 0 ? static_cast<char>(random()) : marks[random() % marks.size()];
      else
        text.erase(at, random() % 9);
      if (text.empty()) text = ",";
    }
    std::vector<ApproxRule> rules;
    std::string problem;
    const bool taken = tuning::parse_approx(text, weak_registry(), rules, problem);
    if (taken == problem.empty() && (!taken || !rules.empty())) continue;
    FAIL(text);
  }
}
