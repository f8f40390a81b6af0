#include "interpose/replace_alltoallv.hpp"

#include <span>

#include "base/saturating.hpp"
#include "interpose/blocks.hpp"
#include "interpose/device_memory.hpp"
#include "interpose/end_job.hpp"
#include "interpose/implementation.hpp"
#include "interpose/ready_plan.hpp"
#include "interpose/run.hpp"
#include "interpose/staging.hpp"
#include "interpose/verify.hpp"

namespace papaya {

namespace {

// One algorithm serves all sizes.
constexpr std::size_t plan_for_bytes = 65536;

// How elements of one side lie.
struct Elements {
  std::size_t bytes = 0;
  bool dense = true;
};

// What one rank finds wrong with its own arguments: no more than what its MPI refuses, for it goes to MPI
// alone.
bool is_erroneous(const Communicator& state, const Arguments& a, std::size_t send_element,
                  std::size_t element) noexcept {
  const bool in_place = a.send == MPI_IN_PLACE;
  if (!a.lists.is_there() || (!in_place && !a.send_lists.is_there())) return true;
  bool sends = false;
  bool receives = false;
  for (int rank = 0; rank < state.size; ++rank) {
    const MPI_Count to = in_place ? 0 : a.send_lists.count(rank);
    const MPI_Count from = a.lists.count(rank);
    if (to < 0 || from < 0) return true;
    sends = sends || to > 0;
    receives = receives || from > 0;
  }
  const auto kept =
      saturating::product(static_cast<std::size_t>(in_place ? 0 : a.send_lists.count(state.rank)), send_element);
  const auto room = saturating::product(static_cast<std::size_t>(a.lists.count(state.rank)), element);
  if (!is_mpich()) return a.receive == MPI_IN_PLACE || (!in_place && kept != room);
  if (receives && a.receive == MPI_IN_PLACE) return true;
  if (receives && element > 0 && a.receive == nullptr && is_dense(a.type)) return true;
  if (in_place) return false;
  if (sends && send_element > 0 && a.send == nullptr && is_dense(a.send_type)) return true;
  if (a.send == a.receive && a.send_type == a.type && a.send_lists.counts == a.lists.counts && aliases::are_refused())
    return true;
  return kept > room;
}

// The blocks of one side as contiguous memory of the host. Returns what StagedBlocks::stage does.
std::size_t lay_out_contiguous(const void* buffer, const Lists& lists, MPI_Datatype type, const Elements& elements,
                               bool device, Staging::Use use, std::span<Block> blocks, StagedBlocks& staged) {
  const auto [element, dense] = elements;
  MPI_Aint lower = 0;
  auto extent = static_cast<MPI_Aint>(element);
  if (!dense) PMPI_Type_get_extent(type, &lower, &extent);
  lay_out(buffer, lists, element, extent, blocks);
  return dense && !device ? 0 : staged.stage(blocks, type, element, use, -1, device);
}

// False if MPI would not take them.
bool describe_elements(const Arguments& a, Elements& send, Elements& receive) noexcept {
  const bool in_place = a.send == MPI_IN_PLACE;
  if (!is_usable(a.type) || (!in_place && !is_usable(a.send_type))) return false;
  const std::int64_t receives = element_bytes_of(a.type);
  const std::int64_t sends = in_place ? receives : element_bytes_of(a.send_type);
  if (receives < 0 || sends < 0) return false;
  receive = {static_cast<std::size_t>(receives), is_dense(a.type)};
  send = {static_cast<std::size_t>(sends), in_place || a.send_type == a.type ? receive.dense : is_dense(a.send_type)};
  return true;
}

bool run_blocks(Communicator& state, Plan& plan, const Arguments& a, const Elements& send_elements,
                const Elements& elements, bool on_device, const CallFacts& facts, Outcome& outcome) noexcept {
  using Use = Staging::Use;
  const bool in_place = a.send == MPI_IN_PLACE;
  const auto ranks = static_cast<std::size_t>(state.size);
  StagedBlocks staged_send;
  StagedBlocks staged;
  state.blocks.assign(2 * ranks, Block{});
  const std::span<Block> receive = std::span(state.blocks).subspan(ranks);
  const std::span<Block> send = in_place ? receive : std::span(state.blocks).first(ranks);
  const bool device = on_device && plan.through_host;
  const auto is_device = [&](const void* buffer) {
    return device && device_memory::holds(buffer, facts.arrival_ticks);
  };
  const bool declines_device = on_device && !device;
  std::size_t lacks = 0;
  if (!declines_device && !in_place)
    lacks = lay_out_contiguous(a.send, a.send_lists, a.send_type, send_elements, is_device(a.send), Use::read, send,
                               staged_send);
  if (!declines_device && lacks == 0)
    lacks = lay_out_contiguous(a.receive, a.lists, a.type, elements, is_device(a.receive),
                               in_place ? Use::both : Use::write, receive, staged);
  if (lacks != 0 && plan.through_host) end_for_lack_of_memory(lacks);
  const Reduction none;
  Operands operands{.send = nullptr,
                    .receive = nullptr,
                    .count = 0,
                    .bytes = 0,
                    .root = -1,
                    .reduction = &none,
                    .send_blocks = send.data(),
                    .receive_blocks = receive.data(),
                    .declines = declines_device || lacks != 0};
  if (!run(state, plan, a.collective, operands, facts, outcome)) return false;
  staged.write_back(receive);
  return true;
}

}  // namespace

bool replace_alltoallv(Communicator& state, const Arguments& a, const CallFacts& facts, Outcome& outcome) noexcept {
  const auto native = [&](Reason why) {
    outcome.reason = why;
    return false;
  };
  const bool in_place = a.send == MPI_IN_PLACE;
  LastChoice& last = state.last[index_of(Collective::alltoallv)];
  const bool known = last.plan != nullptr && last.type == a.type && (in_place || a.send_type == a.type);
  Plan* plan = last.plan;
  Elements elements{.bytes = last.bytes};
  Elements send_elements = elements;
  tuning::Choice choice;
  if (!known) {
    Described nothing;
    choice = decide(facts.job, state, a, Form::blocking, true, nothing).choice;
    if (choice.rule == nullptr) return native(choice.reason);
    // From here on on this rank's own arguments.
    if (!describe_elements(a, send_elements, elements)) return native(Reason::arguments);
  }
  if (is_erroneous(state, a, send_elements.bytes, elements.bytes)) return native(Reason::arguments);
  if (!known) {
    plan = ready_plan(state, choice, plan_for_bytes, facts, outcome);
    if (plan == nullptr) return false;
    if (facts.job.verify_every == 0 && elements.dense && (in_place || a.send_type == a.type) && is_named(a.type))
      last = {a.type, MPI_OP_NULL, 0, elements.bytes, plan, {}};
  }
  const bool on_device = is_on_device(state, a, facts);
  const Reduction none;
  return run_verified(facts, a, state, *plan->rule->algorithm, none, on_device,
                      [&] { return run_blocks(state, *plan, a, send_elements, elements, on_device, facts, outcome); });
}

}  // namespace papaya
