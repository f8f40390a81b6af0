#include "interpose/async_setup.hpp"

#include "algorithms/waiting/switch_over.hpp"

namespace papaya {

namespace {

// Of the plan, which is the nth of its communicator on all ranks alike.
std::uint64_t key_of(std::uint64_t communicator, const Plan& plan) noexcept {
  std::uint64_t key = communicator;
  for (const std::uint64_t part : {plan.ordinal, std::uint64_t{plan.trace_number}, std::uint64_t{plan.capacity}}) {
    // splitmix64
    key += part + 0x9e3779b97f4a7c15u;
    key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9u;
    key = (key ^ key >> 27) * 0x94d049bb133111ebu;
    key ^= key >> 31;
  }
  return key | 1;
}

}  // namespace

Reason join(std::uint64_t communicator, const Members& members, Plan& plan, std::uint64_t call) noexcept {
  Joining& joining = plan.joining;
  Regions& regions = members.resources.regions;
  if (!regions.exists()) return plan.failure = members.resources.why_no_memory;
  if (!joining.is_joined) {
    // Memory that is not there now may be there later; who asks less and less often loses nothing by it.
    if (call < joining.next_try) return Reason::no_shared_memory;
    Regions::Wish wishes[2];
    for (const bool is_lean : {false, true}) {
      plan.is_lean = is_lean;
      wishes[is_lean ? 1 : 0] = {shared_on_one_node(members, plan).total(), bytes_to_leave(members, plan)};
    }
    const std::size_t count = may_be_lean(members, plan) ? 2 : 1;
    const Regions::Attached found = regions.attach(key_of(communicator, plan), {wishes, count});
    if (found.offset < 0) {
      joining.next_try = call + call / 4 + 1;
      return Reason::no_shared_memory;
    }
    plan.is_lean = found.wish == 1;
    plan.region.take(members.resources, found.offset, wishes[found.wish].bytes);
    joining.prepared = prepare_on_one_node(members, plan);
    switch_over::join(regions.agreement(found.offset), members.team.size, call, joining.prepared != nullptr);
    joining.is_joined = true;
    return Reason::few_calls;
  }
  switch (switch_over::enter(regions.agreement(plan.region.offset()), call)) {
    case switch_over::Verdict::not_yet:
      return Reason::few_calls;
    case switch_over::Verdict::from_now_on:
      plan.prepared = std::move(joining.prepared);
      return Reason::none;
    case switch_over::Verdict::never:
      plan.give_up(Reason::no_shared_memory);
      break;
  }
  return plan.failure;
}

}  // namespace papaya
