// MPI_Allreduce on its way to an algorithm: everything that must be equal on all ranks before one of them leaves
// MPI's path, and the setup, which is collective itself.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "interpose/device_memory.hpp"
#include "interpose/dispatch.hpp"
#include "interpose/verify.hpp"

namespace papaya {

namespace {

// A communicator that calls rarely should cost nothing: with a choice of papaya's own the first calls go to MPI.
constexpr std::uint32_t calls_before_setup = 8;
constexpr std::size_t small_capacity = 4096;

// Collective over the communicator, at a call number that is equal on all its ranks. Either every rank is ready
// afterwards or none is.
void set_up(Communicator& state, Setup& setup) noexcept {
  Runtime& process = runtime();
  const Descriptor& algorithm = *setup.rule->algorithm;
  setup.region_bytes = algorithm.region_bytes(state.size, setup.capacity);
  std::int64_t offset = state.rank == 0 ? process.window.allocate(setup.region_bytes, state.size) : -1;
  PMPI_Bcast(&offset, 1, MPI_INT64_T, 0, state.handle);
  if (offset < 0) {
    setup.failure = Reason::no_shared_memory;
    return;
  }
  setup.offset = offset;
  int ready = process.window.prepare_share(offset, setup.region_bytes, state.rank, state.size) ? 1 : 0;
  const Team team{state.rank, state.size, process.arrival_order, process.window.region(offset), &process.policy};
  try {
    if (ready) setup.prepared = algorithm.prepare(team, setup.capacity, setup.rule->values);
  } catch (const std::bad_alloc&) {
    ready = 0;
  }
  int all_ready = 0;
  PMPI_Allreduce(&ready, &all_ready, 1, MPI_INT, MPI_MIN, state.handle);
  if (all_ready) return;
  setup.prepared.reset();
  process.window.release(offset, setup.region_bytes);
  setup.offset = -1;
  setup.failure = Reason::no_shared_memory;
}

Setup* find_setup(Communicator& state, const tuning::Rule& rule, std::size_t bytes) noexcept {
  const std::size_t capacity = bytes <= small_capacity ? small_capacity : rule.algorithm->max_bytes;
  for (Setup& setup : state.setups)
    if (setup.rule == &rule && setup.capacity == capacity) return &setup;
  return &state.setups.emplace_back(Setup{
      .rule = &rule, .capacity = capacity, .trace_number = trace_number(*rule.algorithm), .prepared = nullptr});
}

// Errors that MPI would find are MPI's to report, under the name of the function the user called.
bool is_erroneous(const AllreduceArguments& arguments, const Reduction& reduction) noexcept {
  if (arguments.receive == MPI_IN_PLACE) return true;
  if (reduction.pack == nullptr && (arguments.send == nullptr || arguments.receive == nullptr)) return true;
#if defined(MPICH)
  if (arguments.send == arguments.receive) return true;  // aliased buffers; Open MPI takes them
#endif
  return false;
}

}  // namespace

namespace {

bool is_on_device(const AllreduceArguments& arguments, const CallFacts& facts) noexcept {
  return device_memory::holds(arguments.receive, facts.arrival_ticks) ||
         device_memory::holds(arguments.send, facts.arrival_ticks);
}

// Hands the operands to the algorithm. Whether a buffer is on a device only its own rank knows: it vetoes, and then the
// call goes native on all ranks.
bool run(Communicator& state, Setup& setup, const Reduction& reduction, std::size_t bytes,
         const AllreduceArguments& arguments, const CallFacts& facts, Outcome& outcome) noexcept {
  // The event is begun once the others can go on: recording costs them nothing.
  struct Begin {
    const CallFacts& facts;
    Outcome& outcome;
  } begin{facts, outcome};
  const Operands operands{.send = arguments.send == MPI_IN_PLACE ? arguments.receive : arguments.send,
                          .receive = arguments.receive,
                          .count = static_cast<std::size_t>(arguments.count),
                          .bytes = bytes,
                          .root = -1,
                          .reduction = &reduction,
                          .veto = is_on_device(arguments, facts),
                          .deposited =
                              [](void* begun) {
                                const Begin& event = *static_cast<Begin*>(begun);
                                begin_event(event.facts, event.outcome);
                              },
                          .context = &begin};
  if (!setup.prepared->run(operands, state.site_of(facts.site))) {
    outcome.reason = Reason::device_memory;
    return false;
  }
  outcome.algorithm = setup.trace_number;
  outcome.reason = Reason::none;
  return true;
}

}  // namespace

bool replace_allreduce(Communicator& state, const AllreduceArguments& arguments, const CallFacts& facts,
                       Outcome& outcome) noexcept {
  const auto native = [&](Reason why) {
    outcome.reason = why;
    return false;
  };
  Runtime& process = runtime();
  LastChoice& last = state.last;
  if (last.setup != nullptr && last.type == arguments.type && last.op == arguments.op &&
      last.count == arguments.count && process.verify_every == 0) {
    if (is_erroneous(arguments, last.reduction)) return native(Reason::arguments);
    return run(state, *last.setup, last.reduction, last.bytes, arguments, facts, outcome);
  }
  if (state.inter) return native(Reason::intercommunicator);
  if (state.outside) return native(Reason::outside);
  if (state.size == 1) return native(Reason::one_rank);
  if (arguments.count < 0) return native(Reason::arguments);
  if (arguments.count == 0) return native(Reason::no_data);
  Reduction reduction;
  ReductionContext context;
  if (!describe(arguments.type, arguments.op, state.handle, reduction, context))
    return native(Reason::unsuitable_operation);
  const auto bytes = static_cast<std::uint64_t>(arguments.count) * reduction.element_bytes;
  const tuning::Choice choice = process.selection.choose(Collective::allreduce, bytes, state.facts);
  if (choice.rule == nullptr) return native(choice.reason);
  if (is_erroneous(arguments, reduction)) return native(Reason::arguments);

  Setup* const setup = find_setup(state, *choice.rule, bytes);
  if (setup->prepared == nullptr) {
    if (setup->failure != Reason::none) return native(setup->failure);
    if (!choice.forced && setup->calls_before < calls_before_setup) {
      ++setup->calls_before;
      return native(Reason::few_calls);
    }
    set_up(state, *setup);
    if (setup->prepared == nullptr) return native(setup->failure);
  }
  if (process.verify_every != 0 && ++state.replaced % process.verify_every == 0) {
    Verification verification(arguments, state.handle, reduction);
    if (!run(state, *setup, reduction, bytes, arguments, facts, outcome)) return false;
    verification.compare(arguments.receive);
    return true;
  }
  if (reduction.by_table) last = {arguments.type, arguments.op, arguments.count, bytes, setup, reduction};
  return run(state, *setup, reduction, bytes, arguments, facts, outcome);
}

}  // namespace papaya
