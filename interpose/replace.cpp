#include "interpose/replace.hpp"

#include <algorithm>

#include "base/saturating.hpp"
#include "interpose/device_memory.hpp"
#include "interpose/ready_plan.hpp"
#include "interpose/run.hpp"
#include "interpose/staging.hpp"
#include "interpose/trials.hpp"
#include "interpose/verify.hpp"
#include "interpose/why_native.hpp"

namespace papaya {

namespace {

// Of a move, where it is significant.
std::size_t received_blocks(const Communicator& state, Collective collective) noexcept {
  return collective == Collective::alltoall || collective == Collective::allgather || collective == Collective::gather
             ? static_cast<std::size_t>(state.size)
             : 1;
}
std::size_t sent_blocks(const Communicator& state, Collective collective) noexcept {
  return collective == Collective::alltoall || collective == Collective::scatter ? static_cast<std::size_t>(state.size)
                                                                                 : 1;
}

// Moves: what this rank sends must be what it receives from itself.
bool sends_what_it_receives(const Communicator& state, const Arguments& a, std::uint64_t bytes) noexcept {
  if (a.send_type == a.type && a.send_count == own_elements(state, a)) return true;
  const auto element = static_cast<std::uint64_t>(element_bytes_of(a.send_type));
  return saturating::product(static_cast<std::uint64_t>(a.send_count), element) ==
         (a.collective == Collective::allgatherv
              ? bytes / static_cast<std::uint64_t>(a.count) * static_cast<std::uint64_t>(own_elements(state, a))
              : bytes);
}

bool run_staged(Communicator& state, Plan& plan, const Reduction& reduction, std::size_t bytes, bool on_device,
                const Arguments& a, const CallFacts& facts, Outcome& outcome) noexcept {
  using Use = Staging::Use;
  const bool is_root = state.rank == a.root;
  const bool in_place = a.send == MPI_IN_PLACE;
  const bool device = on_device && plan.through_host;
  const auto count = static_cast<std::size_t>(a.count);
  Operands operands{.send = nullptr,
                    .receive = nullptr,
                    .count = count,
                    .bytes = bytes,
                    .root = a.root,
                    .reduction = &reduction,
                    .declines = on_device && !device};
  if (a.collective == Collective::reduce_scatter) describe_blocks(state, a, reduction.element_bytes, operands);
  if (operands.declines) return run(state, plan, a.collective, operands, facts, outcome);
  const auto device_holds = [&](const void* buffer) {
    return device && device_memory::holds(buffer, facts.arrival_ticks);
  };
  Staging receive;
  Staging send;
  if (a.collective == Collective::bcast) {
    receive = Staging(a.receive, count, a.type, bytes / count, is_root ? Use::read : Use::write, device);
    if (is_root)
      operands.send = receive.bytes();
    else
      operands.receive = receive.bytes();
  } else {
    if (scatters_result(a.collective))
      receive = Staging(a.receive, in_place ? operand_elements(state, a) : result_elements(state, a), a.type,
                        reduction.element_bytes, in_place ? Use::both : Use::write, device_holds(a.receive));
    else if (receives(state, a))
      receive = Staging(a.receive, received_blocks(state, a.collective) * count, a.type, bytes / count,
                        in_place ? Use::both : Use::write, device_holds(a.receive));
    if (!in_place && (a.collective != Collective::scatter || is_root)) {
      const auto send_count = scatters_result(a.collective) ? operand_elements(state, a)
                              : reduces(a.collective)       ? count
                                                            : static_cast<std::size_t>(a.send_count);
      send =
          Staging(a.send, sent_blocks(state, a.collective) * send_count, reduces(a.collective) ? a.type : a.send_type,
                  reduces(a.collective) ? reduction.element_bytes
                  : send_count == 0     ? 0
                                        : bytes / send_count,
                  Use::read, device_holds(a.send));
    }
    operands.receive = receive.bytes();
    operands.send = !in_place ? send.bytes()
                    : a.collective == Collective::allgather || a.collective == Collective::gather
                        ? receive.bytes() + static_cast<std::size_t>(state.rank) * bytes
                        : receive.bytes();
  }
  if (const std::size_t lacks = std::max(send.lacks(), receive.lacks()); lacks != 0) {
    // As with a device's buffer: the others learn of it in the call, unless they may have left it.
    if (plan.through_host) end_for_lack_of_memory(lacks);
    operands.declines = true;
  }
  if (!run(state, plan, a.collective, operands, facts, outcome)) return false;
  if (scatters_result(a.collective))
    receive.write_back(result_elements(state, a));
  else if (operands.receive != nullptr)
    receive.write_back();
  return true;
}

// An allgatherv whose blocks an algorithm cannot take as they are, which may be this rank's alone.
bool run_staged_blocks(Communicator& state, Plan& plan, std::size_t bytes, bool on_device, const Arguments& a,
                       const CallFacts& facts, Outcome& outcome) noexcept {
  using Use = Staging::Use;
  const bool in_place = a.send == MPI_IN_PLACE;
  const bool device = on_device && plan.through_host;
  const std::size_t element = bytes / static_cast<std::size_t>(a.count);
  const auto own = static_cast<std::size_t>(own_elements(state, a));
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(a.type, &lower, &extent);
  const Reduction none;
  Operands operands{.send = nullptr,
                    .receive = nullptr,
                    .count = 0,
                    .bytes = 0,
                    .root = -1,
                    .reduction = &none,
                    .declines = on_device && !device};
  describe_gathered(state, a, element, extent, operands);
  if (operands.declines) return run(state, plan, a.collective, operands, facts, outcome);
  const auto device_holds = [&](const void* buffer) {
    return device && device_memory::holds(buffer, facts.arrival_ticks);
  };
  StagedBlocks staged;
  Staging send;
  std::size_t lacks =
      staged.stage(state.blocks, a.type, element, Use::write, in_place ? state.rank : -1, device_holds(a.receive));
  if (!in_place && own > 0 && lacks == 0) {
    const auto count = static_cast<std::size_t>(a.send_count);
    send = Staging(a.send, count, a.send_type, own * element / count, Use::read, device_holds(a.send));
    lacks = send.lacks();
  }
  operands.send = in_place ? state.blocks[static_cast<std::size_t>(state.rank)].at : send.bytes();
  // As in run_staged.
  if (lacks != 0 && plan.through_host) end_for_lack_of_memory(lacks);
  operands.declines = lacks != 0;
  if (!run(state, plan, a.collective, operands, facts, outcome)) return false;
  staged.write_back(state.blocks);
  return true;
}

// What this rank finds wrong with its own arguments.
struct OwnArguments {
  // MPI refuses them: the others wait for this rank as they would natively.
  bool are_wrong = true;
  // Algorithms do not take them, while MPI may: it does not know how much others receive.
  bool are_mismatched = false;
  bool are_flat = false;  // an algorithm can take the buffers as they are
};

OwnArguments check(const Communicator& state, const Arguments& a, const Described& described,
                   std::uint64_t bytes) noexcept {
  const bool moves = a.collective == Collective::allgather || a.collective == Collective::allgatherv ||
                     a.collective == Collective::alltoall || a.collective == Collective::gather ||
                     a.collective == Collective::scatter;
  OwnArguments own{.are_flat = described.dense};
  if (a.collective == Collective::allgatherv && !a.lists.is_there()) return own;
  if (moves && a.send != MPI_IN_PLACE) {
    if (a.send_count < 0 || !is_usable(a.send_type) || element_bytes_of(a.send_type) < 0) return own;
    own.are_mismatched = !sends_what_it_receives(state, a, bytes);
    // Others may have left already.
    if (own.are_mismatched && is_rooted(a.collective)) return own;
    own.are_flat = own.are_flat && (a.send_type == a.type || is_dense(a.send_type));
  }
  if (a.collective != Collective::barrier && !described.reduction.by_table && !is_usable(a.type)) return own;
  own.are_wrong = is_erroneous(state, a, own.are_flat);
  return own;
}

}  // namespace

bool decide_and_replace(Communicator& state, const Arguments& a, const CallFacts& facts, Outcome& outcome) noexcept {
  const auto native = [&](Reason why) {
    outcome.reason = why;
    return false;
  };
  // Most calls that are not papaya's end here.
  if (const Reason why = excluded(facts_of(state), shape_of(a, Form::blocking, true)); why != Reason::none)
    return native(why);
  Described described;
  Decision decision = decide(facts.job, state, a, Form::blocking, true, described);
  tuning::Choice choice = decision.choice;
  const std::uint64_t bytes = decision.bytes;
  if (decision.may_be_tried) {
    outcome.trial = trials::find(state, a, decision, facts.job);
    outcome.root = a.root;
  }
  const Reduction& reduction = described.reduction;
  const bool can_be_remembered = facts.job.verify_every == 0 && (!reduces(a.collective) || reduction.by_table) &&
                                 (a.collective == Collective::barrier || is_named(a.type));
  LastChoice& last = state.last[index_of(a.collective)];
  const auto native_by_choice = [&] {
    if (choice.forced) why_native::report(facts.job, state, choice.named, bytes, choice.reason);
    if (can_be_remembered)
      last = {.type = a.type, .op = a.op, .count = a.count, .why = choice.reason, .trial = outcome.trial};
    return native(choice.reason);
  };
  if (choice.rule == nullptr && !decision.sets_up_due_plans && !decision.agrees_on_verdicts && outcome.trial == nullptr)
    return native_by_choice();
  const OwnArguments own = check(state, a, described, bytes);
  if (own.are_wrong) return native(Reason::arguments);
  if (decision.agrees_on_verdicts) {
    verdicts::agree(state, facts);
    decision = decide(facts.job, state, a, Form::blocking, true, described);
    choice = decision.choice;
  }
  if (decision.sets_up_due_plans) {
    if (state.has_due_plans) set_up_due_plans(state, facts, outcome);
    if (state.has_due_exchange) trials::exchange(state, facts, outcome);
    if (outcome.trial != nullptr) outcome.trial = outcome.trial->of.current;
  }
  if (outcome.trial != nullptr && trials::follows_rules(state, *outcome.trial, facts.job))
    choice = decide(facts.job, state, a, Form::blocking, true, described, outcome.trial->learnt()).choice;
  if (outcome.trial != nullptr) choice = trials::present_choice(state, *outcome.trial, choice, facts.records.recorder);
  if (choice.rule == nullptr) return native_by_choice();

  Plan* const plan = ready_plan(state, choice, bytes, facts, outcome);
  if (plan == nullptr) {
    if (outcome.trial != nullptr) trials::note_failure(state, *outcome.trial, outcome.reason, facts.records.recorder);
    return false;
  }
  if (own.are_mismatched && plan->through_host) return native(Reason::arguments);  // it cannot decline
  const bool on_device = is_on_device(state, a, facts);
  const bool declines = on_device || own.are_mismatched;
  if (own.are_flat && can_be_remembered)
    last = {.type = a.type,
            .op = a.op,
            .count = a.count,
            .bytes = bytes,
            .plan = plan,
            .reduction = reduction,
            .trial = outcome.trial};
  const bool done = run_verified(facts, a, state, *plan->rule->algorithm, reduction, on_device, [&] {
    return own.are_flat && !(on_device && plan->through_host)
               ? run_in_place(state, *plan, reduction, bytes, declines, a, facts, outcome)
           : a.collective == Collective::allgatherv
               ? run_staged_blocks(state, *plan, bytes, declines, a, facts, outcome)
               : run_staged(state, *plan, reduction, bytes, declines, a, facts, outcome);
  });
  if (own.are_mismatched) outcome.reason = Reason::arguments;
  return done;
}

}  // namespace papaya
