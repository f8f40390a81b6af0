// A collective on its way to an algorithm: everything that must be equal on all ranks before one of them
// leaves MPI's path, and the setup, which is collective itself.

#include "interpose/replace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <numeric>
#include <string>
#include <utility>

#include "algorithms/transport/mpi/mpi_notified.hpp"
#include "algorithms/transport/mpi/team_messages.hpp"
#include "algorithms/transport/shared_notified.hpp"
#include "algorithms/transport/ucx/ucx_notified.hpp"
#include "base/log.hpp"
#include "base/saturating.hpp"
#include "interpose/device_memory.hpp"
#include "interpose/nonblocking.hpp"
#include "interpose/prepare.hpp"
#include "interpose/run.hpp"
#include "interpose/staging.hpp"
#include "interpose/verify.hpp"

namespace papaya {

namespace {

// An algorithm is set up for messages up to one of these; above the last one for all, with memory to run
// ahead in.
constexpr std::size_t small_capacity = 4096;
constexpr std::size_t medium_capacity = 65536;
constexpr std::size_t largest_capacity = std::size_t{16} << 20;

// Does the algorithm borrow the memory of its deposits on this communicator? Its region then holds what is small, and
// one set-up serves all sizes.
bool borrows(const Communicator& state, const Descriptor& algorithm) noexcept {
  return algorithm.control_bytes != nullptr && state.facts.nodes == 1 && runtime().deposits.exists();
}

constexpr std::int64_t page_bytes = 4096;  // of the memory that communicators are given

std::size_t capacity_for(const Communicator& state, const Descriptor& algorithm, std::size_t bytes) noexcept {
  if (borrows(state, algorithm)) return runtime().deposits.largest_bytes();
  if (bytes <= small_capacity) return small_capacity;
  if (bytes <= medium_capacity || algorithm.max_bytes <= medium_capacity)
    return std::min(medium_capacity, algorithm.max_bytes);
  // A quarter of the window, or of what of it is not lent, for one algorithm: a program has several communicators and
  // collectives. Nodes may differ in what they lend; ranks of several must not differ in this.
  const auto limit = static_cast<std::size_t>(runtime().settings.number(Variable::shm_limit));
  const bool lends = state.facts.nodes == 1 && runtime().deposits.exists();
  const std::size_t window = lends ? std::min(limit, runtime().window.region_bytes()) : limit;
  return std::clamp(window / 4 / static_cast<std::size_t>(state.size), medium_capacity, largest_capacity);
}

const std::vector<int>& ranks_of_this_node(const Communicator& state) noexcept {
  return state.nodes.ranks[static_cast<std::size_t>(state.nodes.of_rank[static_cast<std::size_t>(state.rank)])];
}

// The wire of an algorithm that has one, and messages beside it. Collective; null, with the reason, on all ranks alike.
std::unique_ptr<Notified> make_wire(Communicator& state, Setup& setup) noexcept {
  const SegmentShape shape =
      setup.rule->algorithm->segment({state.size, &state.nodes}, setup.capacity, setup.rule->values);
  Runtime& process = runtime();
  std::unique_ptr<ArenaNotified> wire;
  bool is_reached = process.mpi_messages.exists();
  if (process.ucx_window.exists())
    wire = UcxNotified::create(process.ucx_window, state.handle, state.members, process.policy, shape, is_reached);
  else if (is_reached)
    wire = MpiNotified::create(process.mpi_messages, state.handle, state.members, process.policy, shape);
  if (wire == nullptr)
    setup.failure = is_reached || process.too_little_between_nodes ? Reason::no_shared_memory : Reason::no_transport;
  else if (is_rooted(setup.rule->algorithm->collective))
    try {
      setup.messages = messages_between_nodes(state.members);
      if (setup.messages != nullptr) setup.messages->set_tags(tags_of(*wire, state.size));
    } catch (const std::bad_alloc&) {
      end_for_lack_of_memory(state.members.size() * sizeof(int));
    }
  return wire;
}

// Short deposits at a place that does not change are read 10 to 30 ns sooner than those of which the flag's line says
// where they are: what a rank has for them in the region of its communicator, as long as half of all that is for
// regions is free.
std::size_t own_bytes_for(int ranks) noexcept {
  return std::clamp<std::size_t>(32768 / static_cast<std::size_t>(ranks) / 1024 * 1024, 1024, 16384);
}

// The shared memory of an algorithm, on one node. Collective; false, with the reason, on all ranks alike.
bool allocate_region(Communicator& state, Setup& setup) noexcept {
  NodeWindow& window = runtime().window;
  const auto bytes_with = [&](std::size_t own_bytes) {
    setup.own_bytes = own_bytes;
    return shared_on_one_node(state, setup).total();
  };
  struct {
    std::int64_t offset;
    std::uint64_t own_bytes;
  } found{-1, 0};
  if (state.rank == 0) {
    if (borrows(state, *setup.rule->algorithm)) {
      found.own_bytes = own_bytes_for(state.size);
      found.offset = window.allocate(bytes_with(found.own_bytes), state.size, window.region_bytes() / 2);
      if (found.offset < 0) found.own_bytes = 0;
    }
    if (found.offset < 0) found.offset = window.allocate(bytes_with(0), state.size, bytes_to_leave(state, setup));
  }
  PMPI_Bcast(&found, sizeof found, MPI_BYTE, 0, state.handle);
  if (found.offset < 0) {
    setup.failure = Reason::no_shared_memory;
    return false;
  }
  setup.offset = found.offset;
  setup.region_bytes = bytes_with(found.own_bytes);
  return true;
}

// The same where each of several nodes has a region for its ranks.
bool allocate_regions(Communicator& state, Setup& setup) noexcept {
  const std::vector<int>& mine = ranks_of_this_node(state);
  const auto users = static_cast<int>(mine.size());
  NodeWindow& window = runtime().window;
  std::vector<std::int64_t> offsets;
  int has_list = 1;
  try {
    offsets.resize(static_cast<std::size_t>(state.size));
  } catch (const std::bad_alloc&) {
    has_list = 0;
  }
  int all_have = 0;
  PMPI_Allreduce(&has_list, &all_have, 1, MPI_INT, MPI_MIN, state.handle);
  setup.failure = Reason::no_shared_memory;
  if (!all_have) return false;
  const std::size_t bytes = setup.rule->algorithm->region_bytes(users, setup.capacity, setup.rule->values);
  const bool speaks = state.rank == mine.front();
  const std::int64_t offset = speaks && bytes != 0 ? window.allocate(bytes, users) : 0;
  PMPI_Allgather(&offset, 1, MPI_INT64_T, offsets.data(), 1, MPI_INT64_T, state.handle);
  const bool good = std::none_of(offsets.begin(), offsets.end(), [](std::int64_t one) { return one < 0; });
  if (bytes != 0 && offsets[static_cast<std::size_t>(mine.front())] >= 0) {
    setup.offset = offsets[static_cast<std::size_t>(mine.front())];
    setup.region_bytes = bytes;
  }
  if (good) setup.failure = Reason::none;
  return good;
}

void release_region(Setup& setup) noexcept {
  if (setup.offset >= 0) runtime().window.release(setup.offset, setup.region_bytes);
  setup.offset = -1;
}

Team team_of(const Communicator& state) noexcept {
  Runtime& process = runtime();
  Team team{state.rank,  state.size,      process.arrival_order,
            nullptr,     &process.policy, process.single_copy ? read_memory : nullptr,
            state.places};
  team.nodes = &state.nodes;
  return team;
}

// Ranks of the communicator in that of the node.
std::vector<int> ranks_on_node(MPI_Comm comm, int size, MPI_Comm node) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int> found(ranks.size());
  MPI_Group from = MPI_GROUP_NULL;
  MPI_Group to = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &from);
  PMPI_Comm_group(node, &to);
  PMPI_Group_translate_ranks(from, size, ranks.data(), to, found.data());
  PMPI_Group_free(&from);
  PMPI_Group_free(&to);
  return found;
}

// Collective over the communicator, at a call number that is equal on all its ranks. Either every rank is
// ready afterwards or none is.
void set_up(Communicator& state, Setup& setup) noexcept {
  const nonblocking::InsideMpi inside_mpi;
  const Descriptor& algorithm = *setup.rule->algorithm;
  NodeWindow& window = runtime().window;
  int ready = 1;
  if (state.facts.nodes == 1) {
    if (!allocate_region(state, setup)) return;
    setup.prepared = prepare_on_one_node(state, setup);
    ready = setup.prepared != nullptr ? 1 : 0;
  } else {
    Team team = team_of(state);
    if (algorithm.region_bytes != nullptr && !allocate_regions(state, setup)) return release_region(setup);
    setup.wire = make_wire(state, setup);
    if (setup.wire == nullptr) return release_region(setup);
    if (setup.offset >= 0) {
      const std::vector<int>& mine = ranks_of_this_node(state);
      const auto place = std::find(mine.begin(), mine.end(), state.rank) - mine.begin();
      team.region = window.region(setup.offset);
      ready =
          window.prepare_share(setup.offset, setup.region_bytes, static_cast<int>(place), static_cast<int>(mine.size()))
              ? 1
              : 0;
    }
    team.wire = setup.wire.get();
    team.messages = setup.messages.get();
    try {
      if (setup.offset >= 0 && is_rooted(algorithm.collective))
        setup.node_messages = messages_on_node(state.handle, state.size, ranks_of_this_node(state), setup.offset);
      team.node_messages = setup.node_messages.get();
      if (ready) setup.prepared = algorithm.prepare(team, setup.capacity, setup.rule->values);
    } catch (const std::bad_alloc&) {
      ready = 0;
    }
  }
  int all_ready = 0;
  PMPI_Allreduce(&ready, &all_ready, 1, MPI_INT, MPI_MIN, state.handle);
  if (all_ready) return;
  setup.prepared.reset();
  setup.wire.reset();
  release_region(setup);
  setup.failure = Reason::no_shared_memory;
}

Setup* find_setup(Communicator& state, const tuning::Rule& rule, std::size_t bytes) noexcept {
  const std::size_t capacity = capacity_for(state, *rule.algorithm, bytes);
  for (Setup& setup : state.setups)
    if (setup.rule == &rule && setup.capacity == capacity) return &setup;
  return &state.setups.emplace_back(
      Setup{.rule = &rule,
            .capacity = capacity,
            .trace_number = trace_number(*rule.algorithm),
            .collective = rule.algorithm->collective,
            .ordinal = state.setups.size(),
            .wire = nullptr,
            .messages = nullptr,
            .node_messages = nullptr,
            .prepared = nullptr,
            .under_way = {},
            .through_host = is_rooted(rule.algorithm->collective) || !rule.algorithm->takes_vetoes});
}

// Who names an algorithm learns why it does not run: the first time, from the first rank of the job.
void say_why_not(const Communicator& state, const Descriptor* algorithm, std::size_t bytes, Reason reason) noexcept {
  const Runtime& process = runtime();
  const bool is_told = reason == Reason::several_nodes || reason == Reason::no_shared_memory ||
                       reason == Reason::no_transport || reason == Reason::unknown_origin ||
                       reason == Reason::not_met || (reason == Reason::order && !process.arrival_order);
  if (!is_told || process.rank != 0 || algorithm == nullptr) return;
  static std::array<std::atomic<std::uint32_t>, collective_count> said{};
  static_assert(reason_names.size() <= 32);
  const std::uint32_t bit = 1u << static_cast<unsigned>(reason);
  // Relaxed: nothing else hangs on it.
  if ((said[index_of(algorithm->collective)].fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
  Variable variable{};
  if (!tuning::variable_of(algorithm->collective, variable)) return;
  try {
    log::warn(
        fmt::format("{} names {}, but a call of {} bytes on {} ranks goes to MPI: {}.{}", row_of(variable).name,
                    algorithm->name, bytes, state.size, name_of(reason),
                    reason == Reason::several_nodes ? " papaya info --algorithms lists those that work there." : ""));
  } catch (const std::bad_alloc&) {
  }
}

// The set-up of the chosen algorithm; nullptr, with the reason, while or because there is none.
Setup* find_ready_setup(Communicator& state, const tuning::Choice& choice, std::size_t bytes, const CallFacts& facts,
                        Outcome& outcome) noexcept {
  Reason& reason = outcome.reason;
  Setup* const setup = find_setup(state, *choice.rule, bytes);
  const Next next = next_step(choice, Form::blocking, state.facts.nodes,
                              {setup->prepared != nullptr, setup->failure, setup->calls_before});
  reason = next.reason;
  if (next.step == Step::run) return setup;
  if (setup->failure == Reason::none) ++setup->calls_before;
  switch (next.step) {
    case Step::run:
    case Step::go_native:
      return nullptr;
    case Step::postpone:
      if (!setup->is_due) {
        setup->is_due = state.has_due_setups = true;
        setup->is_named = choice.forced;
        setup->first_bytes = bytes;
        state.last.fill({});  // the next call of any collective asks
      }
      return nullptr;
    case Step::join:
      reason = setup->under_way.step(state, *setup, setup->calls_before);
      if (reason == Reason::none) return setup;
      break;
    case Step::set_up:
      // It waits for all ranks: where this one is must be known.
      begin_event(facts, outcome);
      set_up(state, *setup);
      reason = setup->failure;
      break;
  }
  if (choice.forced) say_why_not(state, setup->rule->algorithm, bytes, reason);
  return setup->prepared == nullptr ? nullptr : setup;
}

// In a call that no rank leaves early. Which set-ups are due depends on the calls before it, which are the same on all
// ranks.
void make_due_setups(Communicator& state, const CallFacts& facts, Outcome& outcome) noexcept {
  begin_event(facts, outcome);
  state.has_due_setups = false;
  for (Setup& setup : state.setups) {
    if (!setup.is_due) continue;
    setup.is_due = false;
    set_up(state, setup);
    if (setup.is_named) say_why_not(state, setup.rule->algorithm, setup.first_bytes, setup.failure);
  }
}

std::size_t blocks_of(const Communicator& state, Collective collective) {
  return collective == Collective::alltoall || collective == Collective::allgather
             ? static_cast<std::size_t>(state.size)
             : 1;
}

bool is_usable(MPI_Datatype type) noexcept {
  return is_named(type) || is_committed(type);
}

// Allgather and alltoall: what this rank sends must be what it receives from itself.
bool sends_what_it_receives(const Arguments& a, std::uint64_t bytes) noexcept {
  if (a.send == MPI_IN_PLACE || (a.send_type == a.type && a.send_count == a.count)) return true;
  if (a.send_count < 0) return false;
  const std::int64_t element = element_bytes_of(a.send_type);
  return element >= 0 &&
         saturating::product(static_cast<std::uint64_t>(a.send_count), static_cast<std::uint64_t>(element)) == bytes;
}

bool run_staged(Communicator& state, Setup& setup, const Reduction& reduction, std::size_t bytes, bool on_device,
                const Arguments& a, const CallFacts& facts, Outcome& outcome) noexcept {
  using Use = Staging::Use;
  const bool is_root = state.rank == a.root;
  const bool in_place = a.send == MPI_IN_PLACE;
  const bool device = on_device && setup.through_host;
  const auto count = static_cast<std::size_t>(a.count);
  const std::size_t blocks = blocks_of(state, a.collective);
  Operands operands{.send = nullptr,
                    .receive = nullptr,
                    .count = count,
                    .bytes = bytes,
                    .root = a.root,
                    .reduction = &reduction,
                    .veto = on_device && !device};
  if (operands.veto) return run(state, setup, a.collective, operands, facts, outcome);
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
    if (receives(state, a))
      receive = Staging(a.receive, blocks * count, a.type, bytes / count, in_place ? Use::both : Use::write,
                        device_holds(a.receive));
    if (!in_place) {
      const auto send_count = reduces(a.collective) ? count : static_cast<std::size_t>(a.send_count);
      const std::size_t send_blocks = a.collective == Collective::alltoall ? blocks : 1;
      send = Staging(a.send, send_blocks * send_count, reduces(a.collective) ? a.type : a.send_type,
                     send_count == 0 ? 0 : bytes / send_count, Use::read, device_holds(a.send));
    }
    operands.receive = receive.bytes();
    operands.send = !in_place ? send.bytes()
                    : a.collective == Collective::allgather
                        ? receive.bytes() + static_cast<std::size_t>(state.rank) * bytes
                        : receive.bytes();
  }
  if (const std::size_t lacks = std::max(send.lacks(), receive.lacks()); lacks != 0) {
    // As with a device's buffer: the others learn of it in the call, unless they may have left it.
    if (setup.through_host) end_for_lack_of_memory(lacks);
    operands.veto = true;
  }
  if (!run(state, setup, a.collective, operands, facts, outcome)) return false;
  if (operands.receive != nullptr) receive.write_back();
  return true;
}

// Alltoallv. What one rank finds wrong with its own arguments: no more than what its MPI refuses, for it goes to MPI
// alone.
bool is_erroneous_alltoallv(const Communicator& state, const Arguments& a, std::size_t send_element,
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
#if defined(MPICH)
  if (receives && a.receive == MPI_IN_PLACE) return true;
  if (receives && element > 0 && a.receive == nullptr && is_dense(a.type)) return true;
  if (in_place) return false;
  if (sends && send_element > 0 && a.send == nullptr && is_dense(a.send_type)) return true;
  if (a.send == a.receive && a.send_type == a.type && a.send_lists.counts == a.lists.counts && refuses_aliases())
    return true;
  return kept > room;
#else
  return a.receive == MPI_IN_PLACE || (!in_place && kept != room);
#endif
}

// The blocks of one side as contiguous memory of the host; what had to be packed, or brought from a device, is in
// `staged`. Returns the bytes of memory that were not to be had, 0 when all is there.
std::size_t lay_out(const Communicator& state, const void* buffer, const Lists& lists, MPI_Datatype type,
                    std::size_t element, bool dense, bool device, Staging::Use use, Block* blocks,
                    std::vector<Staging>& staged) {
  MPI_Aint lower = 0;
  auto extent = static_cast<MPI_Aint>(element);
  if (!dense) PMPI_Type_get_extent(type, &lower, &extent);
  const bool stages = !dense || device;
  if (stages) staged.reserve(static_cast<std::size_t>(state.size));
  for (int rank = 0; rank < state.size; ++rank) {
    // By integers: MPI_BOTTOM is a null pointer.
    const auto address = reinterpret_cast<std::intptr_t>(buffer) + lists.place(rank) * extent;
    const auto count = static_cast<std::size_t>(lists.count(rank));
    auto* at = reinterpret_cast<std::byte*>(address);
    if (stages && count > 0) {
      staged.emplace_back(at, count, type, element, use, device);
      if (staged.back().lacks() != 0) return staged.back().lacks();
      at = staged.back().bytes();
    }
    blocks[rank] = {at, count * element};
  }
  return 0;
}

}  // namespace

void say_what_was_not_set_up(const Communicator& state) noexcept {
  for (const Setup& setup : state.setups)
    if (setup.is_due && setup.is_named) say_why_not(state, setup.rule->algorithm, setup.first_bytes, Reason::not_met);
}

// What lies at different places of the window at once has different tags: its pages are fewer than MPI has tags.
std::unique_ptr<TeamMessages> messages_on_node(MPI_Comm comm, int size, const std::vector<int>& members,
                                               std::int64_t offset) {
  const std::vector<int> of_rank = ranks_on_node(comm, size, runtime().node_comm);
  std::vector<int> ranks;
  for (const int rank : members) ranks.push_back(of_rank[static_cast<std::size_t>(rank)]);
  std::vector<int> tags(ranks.size(), static_cast<int>(offset / page_bytes));
  return std::make_unique<TeamMessages>(runtime().node_comm, std::move(ranks), std::move(tags));
}

std::unique_ptr<TeamMessages> messages_between_nodes(const std::vector<int>& members) {
  Runtime& process = runtime();
  const std::size_t bytes =
      (process.ucx_window.exists() ? process.ucx_window.arena() : process.mpi_messages.arena()).bytes();
  int* most = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(process.far_comm, MPI_TAG_UB, &most, &found);
  if (found == 0 || static_cast<std::int64_t>(bytes) / page_bytes > *most) return nullptr;
  return std::make_unique<TeamMessages>(process.far_comm, members);
}

std::vector<int> tags_of(const ArenaNotified& wire, int size) {
  std::vector<int> tags;
  for (int rank = 0; rank < size; ++rank) tags.push_back(static_cast<int>(wire.offset_of(rank) / page_bytes));
  return tags;
}

std::size_t capacity_of(const Communicator& state, const Descriptor& algorithm, std::size_t bytes) noexcept {
  return capacity_for(state, algorithm, bytes);
}

bool replace_alltoallv(Communicator& state, const Arguments& a, const CallFacts& facts, Outcome& outcome) noexcept {
  const auto native = [&](Reason why) {
    outcome.reason = why;
    return false;
  };
  Runtime& process = runtime();
  const bool in_place = a.send == MPI_IN_PLACE;
  LastChoice& last = state.last[index_of(Collective::alltoallv)];
  const bool known = last.setup != nullptr && last.type == a.type && (in_place || a.send_type == a.type);
  Setup* setup = last.setup;
  std::size_t element = last.bytes;
  std::size_t send_element = last.bytes;
  bool dense = true;
  bool send_dense = true;
  tuning::Choice choice;
  if (!known) {
    Described nothing;
    choice = decide(state, a, Form::blocking, true, nothing).choice;
    if (choice.rule == nullptr) return native(choice.reason);
    // From here on on this rank's own arguments.
    if (!is_usable(a.type) || (!in_place && !is_usable(a.send_type))) return native(Reason::arguments);
    const std::int64_t receives = element_bytes_of(a.type);
    const std::int64_t sends = in_place ? receives : element_bytes_of(a.send_type);
    if (receives < 0 || sends < 0) return native(Reason::arguments);
    element = static_cast<std::size_t>(receives);
    send_element = static_cast<std::size_t>(sends);
    dense = is_dense(a.type);
    send_dense = in_place || a.send_type == a.type ? dense : is_dense(a.send_type);
  }
  if (is_erroneous_alltoallv(state, a, send_element, element)) return native(Reason::arguments);
  if (!known) {
    setup = find_ready_setup(state, choice, medium_capacity, facts, outcome);
    if (setup == nullptr) return false;
  }

  const bool on_device = is_on_device(state, a, facts);
  const auto run_it = [&] {
    const auto ranks = static_cast<std::size_t>(state.size);
    std::vector<Staging> staged_send;
    std::vector<Staging> staged;
    state.blocks.assign(2 * ranks, Block{});
    Block* const receive = state.blocks.data() + ranks;
    Block* const send = in_place ? receive : state.blocks.data();
    using Use = Staging::Use;
    const bool device = on_device && setup->through_host;
    const auto is_device = [&](const void* buffer) {
      return device && device_memory::holds(buffer, facts.arrival_ticks);
    };
    const bool vetoes_device = on_device && !device;
    std::size_t lacks = 0;
    if (!vetoes_device && !in_place)
      lacks = lay_out(state, a.send, a.send_lists, a.send_type, send_element, send_dense, is_device(a.send), Use::read,
                      send, staged_send);
    if (!vetoes_device && lacks == 0)
      lacks = lay_out(state, a.receive, a.lists, a.type, element, dense, is_device(a.receive),
                      in_place ? Use::both : Use::write, receive, staged);
    if (lacks != 0 && setup->through_host) end_for_lack_of_memory(lacks);
    const Reduction none;
    Operands operands{.send = nullptr,
                      .receive = nullptr,
                      .count = 0,
                      .bytes = 0,
                      .root = -1,
                      .reduction = &none,
                      .send_blocks = send,
                      .receive_blocks = receive,
                      .veto = vetoes_device || lacks != 0};
    if (!run(state, *setup, a.collective, operands, facts, outcome)) return false;
    // Not more than has come: a program may leave more room.
    auto block = staged.begin();
    for (int rank = 0; rank < state.size && block != staged.end(); ++rank)
      if (a.lists.count(rank) > 0) (block++)->write_back(receive[rank].bytes / std::max<std::size_t>(element, 1));
    return true;
  };
  if (process.verify_every == 0) {
    if (!known && dense && (in_place || a.send_type == a.type) && is_named(a.type))
      last = {a.type, MPI_OP_NULL, 0, element, setup, {}};
    return run_it();
  }
  if (++state.replaced % process.verify_every != 0) return run_it();
  const Reduction none;
  Verification verification(a, state, none, on_device);
  if (!run_it()) return false;
  verification.compare();
  return true;
}

SharedBytes shared_on_one_node(const Communicator& state, const Setup& setup) noexcept {
  const Descriptor& algorithm = *setup.rule->algorithm;
  if (borrows(state, algorithm))
    return {.wire = 0, .region = algorithm.control_bytes(state.size, setup.capacity, setup.own_bytes)};
  if (setup.is_lean && may_be_lean(state, setup))
    return {.wire = 0, .region = algorithm.lean_bytes(state.size, setup.capacity, runtime().deposits.largest_bytes())};
  return shared_bytes(algorithm, team_of(state).layout(), setup.capacity, setup.rule->values);
}

bool may_be_lean(const Communicator& state, const Setup& setup) noexcept {
  return setup.rule->algorithm->lean_bytes != nullptr && state.facts.nodes == 1 && runtime().deposits.exists();
}

// Those with memory of their own leave an eighth of the window to the flags of those that borrow it: they need little,
// on every communicator. Those that may borrow as well also leave what the arenas have addresses for beyond their
// promise.
std::size_t bytes_to_leave(const Communicator& state, const Setup& setup) noexcept {
  if (!runtime().deposits.exists() || borrows(state, *setup.rule->algorithm) || setup.is_lean) return 0;
  return runtime().window.region_bytes() / (may_be_lean(state, setup) ? 2 : 6);
}

std::unique_ptr<Prepared> prepare_on_one_node(Communicator& state, Setup& setup) noexcept {
  const Descriptor& algorithm = *setup.rule->algorithm;
  NodeWindow& window = runtime().window;
  if (!window.prepare_share(setup.offset, setup.region_bytes, state.rank, state.size)) return nullptr;
  Team team = team_of(state);
  if (borrows(state, algorithm) || setup.is_lean) {
    team.deposits = &runtime().deposits;
    team.own_bytes = setup.own_bytes;
  }
  std::byte* const region = window.region(setup.offset);
  team.region = region + shared_on_one_node(state, setup).wire;
  try {
    if (algorithm.segment != nullptr)
      setup.wire = std::make_unique<SharedNotified>(
          region, team.rank, *team.policy, algorithm.segment(team.layout(), setup.capacity, setup.rule->values));
    team.wire = setup.wire.get();
    if (is_rooted(algorithm.collective))
      setup.messages = messages_on_node(state.handle, state.size, ranks_of_this_node(state), setup.offset);
    team.messages = team.node_messages = setup.messages.get();
    return algorithm.prepare(team, setup.capacity, setup.rule->values);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool decide_and_replace(Communicator& state, const Arguments& a, const CallFacts& facts, Outcome& outcome) noexcept {
  const auto native = [&](Reason why) {
    outcome.reason = why;
    return false;
  };
  Runtime& process = runtime();
  Described described;
  const Decision decision = decide(state, a, Form::blocking, true, described);
  const tuning::Choice& choice = decision.choice;
  const std::uint64_t bytes = decision.bytes;
  const Reduction& reduction = described.reduction;
  const auto native_by_choice = [&] {
    if (choice.forced) say_why_not(state, choice.named, bytes, choice.reason);
    return native(choice.reason);
  };
  if (choice.rule == nullptr && !decision.sets_up_due_plans) return native_by_choice();
  // From here on on this rank's own arguments: if they are wrong, the others wait for it as they would
  // natively.
  const bool moves = a.collective == Collective::allgather || a.collective == Collective::alltoall;
  bool flat = described.dense;
  if (moves && a.send != MPI_IN_PLACE) {
    if (!sends_what_it_receives(a, bytes) || !is_usable(a.send_type)) return native(Reason::arguments);
    flat = flat && (a.send_type == a.type || is_dense(a.send_type));
  }
  if (a.collective != Collective::barrier && !reduction.by_table && !is_usable(a.type))
    return native(Reason::arguments);
  if (is_erroneous(state, a, flat)) return native(Reason::arguments);
  if (decision.sets_up_due_plans) make_due_setups(state, facts, outcome);
  if (choice.rule == nullptr) return native_by_choice();

  Setup* const setup = find_ready_setup(state, choice, bytes, facts, outcome);
  if (setup == nullptr) return false;
  const bool on_device = is_on_device(state, a, facts);
  const auto run_it = [&] {
    return flat && !(on_device && setup->through_host)
               ? run_in_place(state, *setup, reduction, bytes, on_device, a, facts, outcome)
               : run_staged(state, *setup, reduction, bytes, on_device, a, facts, outcome);
  };
  if (process.verify_every != 0) {
    if (++state.replaced % process.verify_every != 0) return run_it();
    Verification verification(a, state, reduction, on_device);
    if (!run_it()) return false;
    verification.compare();
    return true;
  }
  if (flat && (!reduces(a.collective) || reduction.by_table) &&
      (a.collective == Collective::barrier || is_named(a.type)))
    state.last[index_of(a.collective)] = {a.type, a.op, a.count, bytes, setup, reduction};
  return run_it();
}

}  // namespace papaya
