// The set-up of a plan without MPI: one by one every step fails on one rank, or is broken off, in calls that wait
// (threads as ranks) and in calls that must not (steps in turn). All ranks have the same outcome, and each thing that
// was made is given back once.
#include "interpose/plan.hpp"

#include <array>
#include <cstdint>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/support/fake_ranks.hpp"

namespace papaya {

using namespace fakes;

namespace {

struct Case {
  Fault fault;
  const char* name;
  Reason on_one_node;
  Reason across_nodes;
};
constexpr Case cases[] = {
    {Fault::none, "nothing fails", Reason::none, Reason::none},
    {Fault::no_region, "no region on one node", Reason::no_shared_memory, Reason::no_shared_memory},
    {Fault::no_pages, "no memory for one rank's share of it", Reason::no_shared_memory, Reason::no_shared_memory},
    {Fault::no_transport, "no transport", Reason::none, Reason::no_transport},
    {Fault::too_little_memory, "too little memory for a transport", Reason::none, Reason::no_shared_memory},
    {Fault::refused, "one rank is not connected", Reason::none, Reason::no_transport},
    {Fault::no_share, "no share of the wire for one rank", Reason::none, Reason::no_shared_memory},
    {Fault::share_throws, "not even the object of it", Reason::none, Reason::no_shared_memory},
    {Fault::messages_throw, "no memory for one rank's messages", Reason::no_shared_memory, Reason::no_shared_memory},
    {Fault::declined, "the algorithm cannot be prepared on one rank", Reason::no_shared_memory,
     Reason::no_shared_memory},
    {Fault::prepare_throws, "there is no memory for it", Reason::no_shared_memory, Reason::no_shared_memory},
};

const Descriptor& algorithm_for(int node_count, bool is_bcast) {
  if (node_count == 1) return is_bcast ? bcast_on_node : allreduce_on_node;
  return is_bcast ? bcast_across : allreduce_across;
}

Reason reason_of(const Case& one, int node_count, bool is_bcast) {
  if (one.fault == Fault::messages_throw && !is_bcast) return Reason::none;
  return node_count == 1 ? one.on_one_node : one.across_nodes;
}

}  // namespace

TEST_CASE("a plan is set up once, by all ranks or by none, whichever step fails") {
  for (const Case& one : cases)
    for (const int node_count : {1, 2})
      for (const bool is_bcast : {false, true}) {
        INFO(one.name << ", " << node_count << " nodes, " << (is_bcast ? "bcast" : "allreduce"));
        fault = one.fault;
        const Descriptor& algorithm = algorithm_for(node_count, is_bcast);
        const Reason reason = reason_of(one, node_count, is_bcast);
        {
          Job job(node_count, true, algorithm);
          job.set_up_waiting();
          job.has_outcome(reason);
        }
        for (int eager = 0; eager < ranks; ++eager) {
          Job job(node_count, false, algorithm);
          job.set_up_in_turn(eager);
          job.has_outcome(reason);
        }
        // As for a nonblocking call, which has the wire alone: on one node it lies in the region.
        Job job(node_count, false, is_bcast ? bcast_across : allreduce_across, true);
        job.set_up_in_turn(unlucky);
        const bool needs_region = one.fault == Fault::no_region || one.fault == Fault::no_pages;
        job.has_outcome(node_count == 2 && needs_region ? Reason::none : reason);
      }
  fault = Fault::none;
}

TEST_CASE("a set-up that is broken off between two exchanges gives back what there was") {
  for (const int node_count : {1, 2})
    for (const bool is_bcast : {false, true})
      for (int advances = 0; advances < 12; ++advances) {
        INFO(node_count << " nodes, " << (is_bcast ? "bcast" : "allreduce") << ", after " << advances);
        Job job(node_count, false, algorithm_for(node_count, is_bcast));
        {
          std::vector<Steps> steps;
          for (int rank = 0; rank < ranks; ++rank) steps.push_back(job[rank].steps());
          for (int i = 0; i < advances; ++i) steps[static_cast<std::size_t>(i % ranks)].advance();
        }
        for (int rank = 0; rank < ranks; ++rank) job[rank].end();
        CHECK(alive == 0);
        CHECK(mistakes == 0);
        for (int rank = 0; rank < ranks; ++rank) CHECK(job[rank].is_transport_whole());
      }
}

TEST_CASE("ranks that must not wait join a plan, and serve from the same call on or never") {
  for (const Case& one : cases) {
    if (one.on_one_node == Reason::none && one.fault != Fault::none) continue;
    INFO(one.name);
    fault = one.fault;
    Job job(1, false, bcast_on_node);
    // Of each rank: the first call that is served.
    std::array<std::uint64_t, ranks> first{};
    std::array<std::uint64_t, ranks> calls{};
    for (int step = 0; step < 80; ++step) {
      // Rank 0 runs ahead of the others.
      const int rank = step % 5 < 2 ? 0 : step % 5 - 1;
      const auto at = static_cast<std::size_t>(rank);
      Plan& plan = *job[rank].plan;
      ++calls[at];
      if (plan.failure != Reason::none || plan.prepared != nullptr) continue;
      if (job[rank].join_at(calls[at]) == Reason::none) first[at] = calls[at];
    }
    const bool serves = one.fault == Fault::none;
    for (const std::uint64_t call : first) CHECK(call == first[0]);
    CHECK((first[0] != 0) == serves);
    if (one.fault != Fault::no_region)  // memory may be there later
      for (int rank = 0; rank < ranks; ++rank)
        CHECK(job[rank].plan->failure == (serves ? Reason::none : Reason::no_shared_memory));
    if (!serves) job.is_as_before();
    for (int rank = 0; rank < ranks; ++rank) job[rank].end();
    job.is_as_before();
  }
  fault = Fault::none;
}

TEST_CASE("one plan serves all calls of a rule that are no larger than it was made for") {
  Job job(1, false, allreduce_on_node);
  Plans& plans = job[0].plans();
  const auto plan_for = [&](const tuning::Rule& rule, std::size_t bytes, Form form = Form::blocking) {
    return &plans.plan_for(job[0].members(), rule, bytes, form);
  };
  Plan* const small = job[0].plan;
  CHECK(plan_for(job.rule(), 1) == small);
  CHECK(plan_for(job.rule(), small->capacity) == small);
  Plan* const larger = plan_for(job.rule(), small->capacity + 1);
  CHECK(larger != small);
  CHECK(larger->capacity > small->capacity);
  CHECK(larger->ordinal == small->ordinal + 1);
  const tuning::Rule other{.algorithm = &bcast_on_node, .values = {}};
  CHECK(plan_for(other, 1) != small);
  CHECK_FALSE(small->through_host);
  CHECK(plan_for(other, 1)->through_host);  // a rank may have left before another finds its buffer on a device
  const tuning::Rule pending{.algorithm = &allreduce_on_node, .values = {}};
  CHECK(plan_for(pending, 1, Form::nonblocking)->through_host);
}

}  // namespace papaya
