#include "interpose/ready_plan.hpp"

#include <fmt/format.h>

#include <atomic>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "interpose/async_setup.hpp"
#include "interpose/attention.hpp"
#include "interpose/mpi_agreement.hpp"
#include "interpose/why_native.hpp"

namespace papaya {

namespace {

// What this process has made with all ranks of a communicator: on one node, across nodes.
class SetUps {
 public:
  void add(std::int64_t ns) noexcept {
    ns_.fetch_add(ns, std::memory_order_relaxed);
    count_.fetch_add(1, std::memory_order_relaxed);
  }
  std::int64_t mean_ns() const noexcept {
    const std::int64_t count = count_.load(std::memory_order_relaxed);
    return count == 0 ? -1 : ns_.load(std::memory_order_relaxed) / count;
  }

 private:
  std::atomic<std::int64_t> ns_{0};
  std::atomic<std::int64_t> count_{0};
};
SetUps set_ups[2];

// It waits for all ranks: where this one is must be known.
void set_up_now(const Communicator& state, const Members& members, Plan& plan, const CallFacts& facts,
                Outcome& outcome) noexcept {
  begin_event(facts, outcome);
  const nonblocking::InsideMpi inside_mpi;
  MpiAgreement agreement(state.handle, MpiAgreement::Way::waiting, members.resources.transport, facts.job.world_comm);
  Steps steps = set_up(plan, members, agreement);
  const std::uint64_t begin = clock::ticks();
  agreement.finish(steps);
  const double took_ns = static_cast<double>(clock::ticks() - begin) * facts.job.ns_per_tick;
  set_ups[state.facts.nodes > 1 ? 1 : 0].add(static_cast<std::int64_t>(took_ns));
  if (state.rank == 0)
    log::debug(fmt::format("set-up of {} for {} ranks and up to {} bytes: {:.1f} us", plan.rule->algorithm->name,
                           state.size, plan.capacity, took_ns * 1e-3));
}

// Of which papaya does not know where it comes from the ranks have no number in common.
Reason join_others(const Communicator& state, const Members& members, Plan& plan) noexcept {
  if (!state.is_known) return plan.failure = Reason::unknown_origin;
  return join(state.id, members, plan, plan.calls_before);
}

void postpone(Communicator& state, Plan& plan, bool is_named, std::size_t bytes) noexcept {
  if (plan.is_due) return;
  plan.is_due = state.has_due_plans = true;
  plan.is_named = is_named;
  plan.first_bytes = bytes;
  state.last.fill({});  // the next call of any collective asks
}

}  // namespace

Plan* ready_plan(Communicator& state, const tuning::Choice& choice, std::size_t bytes, const CallFacts& facts,
                 Outcome& outcome) noexcept {
  const Members members = communicators::members_of(state);
  Plan& plan = state.plans.plan_for(members, *choice.rule, bytes, Form::blocking);
  const Next next =
      next_step(choice, Form::blocking, state.facts.nodes, {plan.prepared != nullptr, plan.failure, plan.calls_before});
  outcome.reason = next.reason;
  if (next.step == Step::run) return &plan;
  if (plan.failure == Reason::none) ++plan.calls_before;
  if (next.step == Step::go_native) return nullptr;
  if (next.step == Step::postpone) {
    postpone(state, plan, choice.forced, bytes);
    return nullptr;
  }
  if (next.step == Step::join) {
    outcome.reason = join_others(state, members, plan);
  } else {
    set_up_now(state, members, plan, facts, outcome);
    outcome.reason = plan.failure;
  }
  if (outcome.reason == Reason::none) return &plan;
  if (choice.forced) why_native::report(facts.job, state, plan.rule->algorithm, bytes, outcome.reason);
  return nullptr;
}

std::int64_t mean_set_up_ns(bool across_nodes) noexcept {
  return set_ups[across_nodes ? 1 : 0].mean_ns();
}

void set_up_due_plans(Communicator& state, const CallFacts& facts, Outcome& outcome) noexcept {
  const Members members = communicators::members_of(state);
  state.has_due_plans = false;
  for (Plan& plan : state.plans) {
    if (!plan.is_due) continue;
    plan.is_due = false;
    set_up_now(state, members, plan, facts, outcome);
    if (plan.is_named) why_native::report(facts.job, state, plan.rule->algorithm, plan.first_bytes, plan.failure);
  }
}

}  // namespace papaya
