#include "interpose/communicator.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <string_view>

#include "interpose/attention.hpp"
#include "interpose/comm_facts.hpp"
#include "interpose/implementation.hpp"
#include "interpose/world.hpp"
#include "profiler/record/identity.hpp"

namespace papaya::communicators {

int keyval = MPI_KEYVAL_INVALID;
thread_local constinit LastLookUp last_look_up{};
constinit std::atomic<std::uint64_t> generation{1};

namespace {

// Where a communicator comes from, as all its ranks know it.
struct Birth {
  std::uint64_t parent_id = 0;
  std::uint64_t salt = 0;
  std::uint64_t ordinal = 0;  // as in identity::of_child
  bool is_known = false;      // as in Communicator
  trace::Origin origin = trace::Origin::unknown;
};

constexpr std::uint64_t copy_salt = std::uint64_t{2} << 32;  // of MPI_Comm_idup, which other creations may overtake

// Never destroyed: MPI_Finalize may be called by an exit handler or by the destructor of a global object.
struct Table {
  std::mutex mutex;  // guards `all`, `orphans`, every state's children, and the making of states
  std::vector<Communicator*> all;
  std::map<std::uint64_t, std::uint64_t> orphans;  // communicators of unknown origin so far, by members
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> families;  // the same without a parent, by members
                                                                              // and way of creation
  std::map<MPI_Comm, Birth> unborn;                                           // copies that could not be used yet
  std::vector<std::unique_ptr<Communicator>> leaving;                         // freed, but not ended; guarded too
};
Table& table = *new Table;
std::mutex& mutex = table.mutex;
std::vector<Communicator*>& all = table.all;
MPI_Group world_group = MPI_GROUP_NULL;
const Context* context = nullptr;  // both written in MPI_Init
void (*before_end)(const Job&, Communicator&) noexcept = nullptr;

// The communicators that this thread is freeing: a callback of one may free another. Attributes are deleted
// one by one, papaya's among them, and in an order that is each rank's own; so what callbacks do on such a
// communicator goes to MPI from the beginning, on all ranks alike.
struct Freeing {
  MPI_Comm comm;
  const Freeing* outer;
};
thread_local constinit const Freeing* being_freed = nullptr;

bool is_being_freed(MPI_Comm comm) noexcept {
  for (const Freeing* one = being_freed; one != nullptr; one = one->outer)
    if (one->comm == comm) return true;
  return false;
}

// By communicators that are gone.
std::array<std::atomic<std::uint64_t>, collective_count> replaced_before{};

void write_row(Communicator& state) noexcept {
  if (state.row == nullptr || !context->records.recorder.is_open()) return;
  state.row->calls = state.calls;
}

bool may_end(Communicator& state) noexcept {
  return std::all_of(state.plans.begin(), state.plans.end(),
                     [](Plan& plan) { return plan.prepared == nullptr || plan.prepared->may_end(); });
}

// A rank may have left calls, and free the communicator, before others come to them: what they have still to tell it
// would be told to whoever gets the memory next. MPI frees a communicator without waiting, so its algorithms are kept
// until then, at most to MPI_Finalize.
void end_sooner_or_later(std::unique_ptr<Communicator> state) noexcept {
  std::vector<std::unique_ptr<Communicator>> ended;
  {
    const std::lock_guard lock(mutex);
    std::vector<std::unique_ptr<Communicator>>& leaving = table.leaving;
    leaving.push_back(std::move(state));
    const auto kept =
        std::stable_partition(leaving.begin(), leaving.end(), [](const auto& one) { return !may_end(*one); });
    std::move(kept, leaving.end(), std::back_inserter(ended));
    leaving.erase(kept, leaving.end());
  }
  // Outside the lock.
  ended.clear();
}

void destroy(Communicator* state) noexcept {
  context->records.node_arrivals.end(state->on_node, state->calls);
  write_row(*state);
  before_end(context->job, *state);
  for (std::size_t i = 0; i < collective_count; ++i)
    replaced_before[i].fetch_add(state->served[i], std::memory_order_relaxed);
  end_sooner_or_later(std::unique_ptr<Communicator>(state));
}

thread_local constinit bool is_moved = false;  // the attribute is about to be set again

int on_delete(MPI_Comm, int, void* value, void*) {
  if (is_moved) return MPI_SUCCESS;
  generation.fetch_add(1, std::memory_order_relaxed);
  auto* const state = static_cast<Communicator*>(value);
  {
    const std::lock_guard lock(mutex);
    const auto found = std::find(all.begin(), all.end(), state);
    if (found == all.end()) return MPI_SUCCESS;
    *found = all.back();
    all.pop_back();
  }
  destroy(state);
  return MPI_SUCCESS;
}

// The ranks on this node, if each of them records: its arrivals could not be compared otherwise.
void find_group(Communicator& state, const std::vector<int>& members) {
  const Job& job = context->job;
  const Records& records = context->records;
  if (state.inter || state.outside || !records.recorder.is_open()) return;
  NodeArrivals::Group group;
  group.communicator = state.id;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (job.node_of[static_cast<std::size_t>(members[i])] != job.node) continue;
    const trace::NodeBoard* const board = records.node_boards.find(members[i]);
    if (board == nullptr) return;
    if (static_cast<int>(i) == state.rank) group.mine = group.members.size();
    group.members.push_back({members[i], static_cast<std::int32_t>(i), board});
  }
  if (group.members.size() > 1) state.on_node = std::move(group);
}

// `child` was made now from `parent`. The mutex is held.
Birth birth_of(Communicator& parent, std::uint64_t members, std::uint64_t salt, trace::Origin origin) {
  return {parent.id, salt, parent.children[{members, salt}]++, parent.is_known, origin};
}

// Of a communicator that comes from where papaya does not look, or from a call that could not be followed to its end.
Birth late_birth_of(MPI_Comm comm, std::uint64_t members) {
  if (const auto unborn = table.unborn.find(comm); unborn != table.unborn.end()) {
    const Birth birth = unborn->second;
    table.unborn.erase(unborn);
    return birth;
  }
  return {0, 0, table.orphans[members]++, false, trace::Origin::unknown};
}

// Makes the state of `comm`. The mutex is held. `born(members)` gives its Birth.
template <class Born>
Communicator* make(MPI_Comm comm, Born&& born) {
  const Job& job = context->job;
  Recorder& recorder = context->records.recorder;
  auto state = std::make_unique<Communicator>();
  state->handle = comm;
  int inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  state->inter = inter != 0;
  PMPI_Comm_rank(comm, &state->rank);
  PMPI_Comm_size(comm, &state->size);
  state->peers = state->size;
  if (state->inter)
    PMPI_Comm_remote_size(comm, &state->peers);
  else
    state->destinations = destinations_of(comm);
  const std::vector<int> members = world_ranks_of(comm, world_group);
  std::map<int, int> nodes;  // and how many members are on each
  int ranks_per_node = 0;
  for (const int member : members) {
    if (member < 0)
      state->outside = true;
    else
      ranks_per_node = std::max(ranks_per_node, ++nodes[job.node_of[static_cast<std::size_t>(member)]]);
  }
  state->arrival_order = job.arrival_order;
  state->approximates = job.approximates;
  state->facts = {.ranks = state->size,
                  .nodes = static_cast<int>(nodes.size()),
                  .oversubscribed = job.oversubscribed,
                  // Where ranks outnumber cores Open MPI yields while it waits; MPICH's UCX device does not, whatever
                  // it is told.
                  .native_yields = !is_mpich(),
                  .ranks_per_node = ranks_per_node};
  if (const auto& locations = job.locations; !locations.empty() && nodes.size() == 1 && !state->outside)
    for (const int member : members) state->locations.push_back(locations[static_cast<std::size_t>(member)]);
  if (!state->outside) {
    state->members = members;
    if (nodes.size() > 1) state->offsets.resize(members.size());
    std::vector<int> keys;
    for (const int member : members) keys.push_back(job.node_of[static_cast<std::size_t>(member)]);
    state->nodes = nodes_by(keys);
  }
  const std::uint64_t hash = identity::of_members(members);
  trace::Origin origin = state->inter ? trace::Origin::inter : trace::Origin::unknown;
  if (comm == MPI_COMM_WORLD) {
    state->id = identity::world;
    state->is_known = true;
  } else {
    const Birth birth = born(hash);
    state->parent_id = birth.parent_id;
    state->is_known = birth.is_known;
    state->id = identity::of_child(birth.parent_id, hash, birth.salt, birth.ordinal);
    if (!state->inter) origin = birth.origin;
  }
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  PMPI_Comm_get_name(comm, name, &length);
  if (recorder.is_open())
    state->row = recorder.add_communicator(state->id, state->parent_id, state->size, state->rank, state->facts.nodes,
                                           std::string_view(name, static_cast<std::size_t>(length)));
  if (state->row != nullptr) state->row->origin = static_cast<std::int32_t>(origin);
  find_group(*state, members);
  all.push_back(state.get());
  if (PMPI_Comm_set_attr(comm, keyval, state.get()) != MPI_SUCCESS) {
    all.pop_back();
    return nullptr;
  }
  return state.release();
}

}  // namespace

bool is_plausible(MPI_Comm comm) noexcept {
  if (comm == MPI_COMM_NULL) return false;
#if defined(MPICH)
  const auto bits = static_cast<unsigned>(comm);  // as for datatypes: bits 26 to 29 say communicator
  return ((bits >> 26) & 0xf) == 0x1 && (bits >> 30) != 0;
#else
  return true;
#endif
}

Members members_of(Communicator& state) noexcept {
  Team team{state.rank,       state.size,           state.arrival_order, nullptr,
            &context->policy, context->read_memory, state.locations};
  team.nodes = &state.nodes;
  return {.resources = context->resources(),
          .team = team,
          .nodes = state.facts.nodes,
          .world_ranks = state.members,
          .offsets = state.offsets};
}

bool start(const Context& process, void (*at_end)(const Job&, Communicator&) noexcept) {
  context = new Context(process);  // never destroyed, as the table
  before_end = at_end;
  PMPI_Comm_group(world::comm(), &world_group);
  if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &keyval, nullptr) != MPI_SUCCESS) return false;
  const std::lock_guard lock(mutex);
  return world::is_of_sessions() || make(MPI_COMM_WORLD, [](std::uint64_t) { return Birth{}; }) != nullptr;
}

void stop() noexcept {
  while (true) {
    Communicator* state = nullptr;
    {
      const std::lock_guard lock(mutex);
      if (all.empty()) break;
      state = all.back();
    }
    MPI_Comm handle = state->handle;
    // Deleting the attribute calls on_delete. Should MPI refuse, the state is taken off the list all the
    // same.
    if (PMPI_Comm_delete_attr(handle, keyval) != MPI_SUCCESS) {
      const std::lock_guard lock(mutex);
      if (!all.empty() && all.back() == state) all.pop_back();
    }
  }
  table.leaving.clear();
  PMPI_Comm_free_keyval(&keyval);
  PMPI_Group_free(&world_group);
}

Communicator* look_up(MPI_Comm comm) noexcept {
  if (is_being_freed(comm)) return nullptr;
  void* value = nullptr;
  int found = 0;
  const std::uint64_t now = generation.load(std::memory_order_relaxed);
  if (PMPI_Comm_get_attr(comm, keyval, &value, &found) != MPI_SUCCESS || !found) return nullptr;
  auto* const state = static_cast<Communicator*>(value);
  last_look_up = {comm, now, state};
  return state;
}

void leave_world() noexcept {
  for (const MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF})
    if (find(comm) != nullptr) PMPI_Comm_delete_attr(comm, keyval);
}

Communicator* find_or_make(MPI_Comm comm) noexcept {
  if (!is_plausible(comm)) return nullptr;
  if (Communicator* const state = find(comm)) return state;
  if (is_being_freed(comm)) return nullptr;
  const std::lock_guard lock(mutex);
  if (Communicator* const state = find(comm)) return state;
  return make(comm, [comm](std::uint64_t members) { return late_birth_of(comm, members); });
}

BetweenNodes& between_nodes() noexcept {
  return context->between_nodes;
}

const Job& the_job() noexcept {
  return context->job;
}

void forget_choices() noexcept {
  const std::lock_guard lock(mutex);
  for (Communicator* state : all) state->last.fill({});
}

std::uint64_t replaced_calls(Collective collective) noexcept {
  std::uint64_t calls = replaced_before[index_of(collective)].load(std::memory_order_relaxed);
  const std::lock_guard lock(mutex);
  for (const Communicator* state : all) calls += state->served[index_of(collective)];
  return calls;
}

Owner owner_of(const Prepared* prepared) noexcept {
  while (prepared->phase_of != nullptr) prepared = prepared->phase_of;
  const std::lock_guard lock(mutex);
  for (const Communicator* state : all)
    for (const Plan& plan : state->plans)
      if (plan.prepared.get() == prepared) return {state, plan.collective, prepared, plan.rule->algorithm->one_node};
  return {nullptr, Collective::allreduce, prepared, false};
}

namespace {

// MPICH calls the delete callbacks of the newest attributes first, and the oldest one's answer is that of
// MPI_Comm_free: it has to be the program's, which may refuse.
void make_newest(MPI_Comm comm) noexcept {
  if (comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF || !is_plausible(comm)) return;
  Communicator* const state = find(comm);
  if (state == nullptr) return;
  is_moved = true;
  const bool is_off = PMPI_Comm_delete_attr(comm, keyval) == MPI_SUCCESS;
  is_moved = false;
  if (is_off && PMPI_Comm_set_attr(comm, keyval, state) != MPI_SUCCESS) on_delete(comm, keyval, state, nullptr);
}

}  // namespace

int free(MPI_Comm* comm, int (*native)(MPI_Comm*)) {
  if (is_mpich() && comm != nullptr) make_newest(*comm);
  const Freeing one{comm == nullptr ? MPI_COMM_NULL : *comm, being_freed};
  being_freed = &one;
  generation.fetch_add(1, std::memory_order_relaxed);  // no answer from before holds
  if (comm != nullptr) {
    const std::lock_guard lock(mutex);
    table.unborn.erase(*comm);
  }
  const nonblocking::InsideMpi inside_mpi;
  const int code = native(comm);
  being_freed = one.outer;
  return code;
}

void rename(MPI_Comm comm, std::string_view name) noexcept {
  if (!is_plausible(comm) || !context->records.recorder.is_open()) return;
  Communicator* const state = find(comm);
  if (state != nullptr && state->row != nullptr) Recorder::set_name(state->row->name, sizeof state->row->name, name);
}

void adopt(MPI_Comm parent, MPI_Comm child, trace::Origin origin, std::uint64_t salt) noexcept {
  if (child == MPI_COMM_NULL) return;
  Communicator* const parent_state = find_or_make(parent);
  const std::lock_guard lock(mutex);
  if (find(child) != nullptr) return;
  make(child, [&](std::uint64_t members) {
    return parent_state == nullptr ? late_birth_of(child, members) : birth_of(*parent_state, members, salt, origin);
  });
}

void adopt_later(MPI_Comm parent, MPI_Comm child) noexcept {
  Communicator* const parent_state = find_or_make(parent);
  if (parent_state == nullptr) return;
  const std::uint64_t members = identity::of_members(world_ranks_of(parent, world_group));
  const std::lock_guard lock(mutex);
  // Counted where the handle is not there yet, too: whether it is may differ from rank to rank.
  Birth birth = birth_of(*parent_state, members, copy_salt, trace::Origin::dup);
  birth.is_known = false;
  if (is_plausible(child)) table.unborn.insert_or_assign(child, birth);
}

void adopt_orphan(MPI_Comm child, trace::Origin origin, std::uint64_t salt) noexcept {
  if (!is_plausible(child)) return;
  const std::lock_guard lock(mutex);
  if (find(child) != nullptr) return;
  make(child, [&](std::uint64_t members) { return Birth{0, salt, table.families[{members, salt}]++, false, origin}; });
}

}  // namespace papaya::communicators
