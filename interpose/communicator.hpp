// What papaya keeps for one communicator, found through an MPI attribute (never by the handle's value, which
// MPI may give to another communicator later). Made when the communicator is created or first used, gone with
// it.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "base/reason.hpp"
#include "base/topology.hpp"
#include "interpose/between_nodes.hpp"
#include "interpose/job.hpp"
#include "interpose/plan.hpp"
#include "interpose/records.hpp"
#include "profiler/record/format.hpp"
#include "profiler/record/node_arrivals.hpp"
#include "tuning/selection.hpp"

namespace papaya {

namespace nonblocking {
class Queue;
}
namespace approx {
class OnCommunicator;
}
namespace trials {
class OnCommunicator;
struct One;
}  // namespace trials

// The decision for the last call of a collective with a predefined type and operation, whose handles never change their
// meaning: a program in a loop asks the same again.
struct LastChoice {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  MPI_Count count = 0;
  std::size_t bytes = 0;
  Plan* plan = nullptr;       // prepared; null: nothing is remembered, or that the call is MPI's
  Reason why = Reason::none;  // the call is MPI's, for this reason; none: it is not
  Reduction reduction;
  trials::One* trial = nullptr;  // whose calls are counted
};

// A result that differs from MPI's own, on this rank (PAPAYA_VERIFY).
struct Difference {
  const Descriptor* algorithm;
  Collective collective;
  std::uint64_t communicator;
  std::string communicator_name;
  int ranks;
  std::uint64_t call;
  std::size_t element;
  std::string ours;
  std::string expected;
};
// On an algorithm, before the ranks have agreed on it; the same ones in the same order on all of them.
struct Verdict {
  const Descriptor* algorithm;
  std::optional<Difference> difference;  // the first that this rank has found
};

// Selections of this communicator alone (hints.hpp).
struct Hints {
  explicit Hints(const tuning::Selection& of_job) : selection(of_job) {}
  tuning::Selection selection;
  std::array<std::string, collective_count> texts;  // empty: the job's selection holds
};

struct Communicator {
  MPI_Comm handle = MPI_COMM_NULL;
  std::uint64_t id = 0;
  std::uint64_t parent_id = 0;
  int rank = 0;
  int size = 0;
  int peers = 0;         // ranks a v-form's arrays are about: the remote group's for an inter-communicator
  int destinations = 0;  // neighbours that this rank sends to in neighbourhood collectives
  bool inter = false;
  bool outside = false;   // has members that MPI_COMM_WORLD does not
  bool is_known = false;  // `id` is the same on all ranks: it was made from known ones by calls that papaya follows
  bool arrival_order = false;  // PAPAYA_ORDER=arrival
  bool approximates = false;   // PAPAYA_APPROX: a rule may be for it
  tuning::Facts facts{};
  std::vector<topology::Location> locations;             // by rank; empty if all are the same
  std::vector<int> members;                              // ranks in MPI_COMM_WORLD; empty if `outside`,
  Nodes nodes;                                           // as is which of them are on which node
  std::uint64_t calls = 0;                               // collective calls so far: the next call's number
  std::uint64_t replaced = 0;                            // calls given to an algorithm while PAPAYA_VERIFY is set
  std::array<std::uint64_t, collective_count> served{};  // calls that an algorithm has served, by collective
  trace::Communicator* row = nullptr;
  NodeArrivals::Group on_node;  // whose arrivals are compared while the job runs

  // How many children with the same members and way of creation it has had. Guarded by the registry's mutex.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> children;

  std::vector<Block> blocks;           // of the present alltoallv: what is sent, then what is received
  std::vector<std::size_t> starts;     // of the blocks of the present reduce_scatter
  std::vector<std::int64_t> offsets;   // as in Members
  std::shared_ptr<const Hints> hints;  // null: none; plans point to its rules
  Plans plans;                         // LastChoice points into it
  bool has_due_plans = false;
  std::vector<Verdict> verdicts;           // to be agreed on
  std::vector<const Descriptor*> dropped;  // algorithms that serve it no longer, by agreement
  std::array<LastChoice, collective_count> last;
  std::shared_ptr<trials::OnCommunicator> trials;  // from the first call whose choice is papaya's own
  bool has_due_exchange = false;                   // of trials
  std::shared_ptr<approx::OnCommunicator> approx;  // from the first call that a rule may be for
  std::shared_ptr<nonblocking::Queue> queue;       // of nonblocking calls; none where they are all MPI's
  static constexpr std::size_t site_count = 64;
  wait::Site sites[site_count];

  wait::Site& site_of(const void* call_site) noexcept {
    return sites[(reinterpret_cast<std::uintptr_t>(call_site) * 0x9e3779b97f4a7c15u) >> 58];
  }
};

namespace communicators {

// What the states need of the process; outlives them.
struct Context {
  const Job& job;
  Records& records;
  Resources (*resources)() noexcept;  // at present
  BetweenNodes& between_nodes;
  wait::Policy& policy;
  ReadMemory read_memory;  // as in Team
};

// For whom the plans of `state` are.
Members members_of(Communicator& state) noexcept;

// Creates the keyval and the state of MPI_COMM_WORLD. `at_end` is called for every state before it ends, while its
// communicator is still there.
bool start(const Context& process, void (*at_end)(const Job&, Communicator&) noexcept);
// Frees every state, in the same order on all ranks as far as the application's own order was.
void stop() noexcept;
// Before MPI_Finalize in a job that goes on with sessions: those of MPI_COMM_WORLD and MPI_COMM_SELF.
void leave_world() noexcept;

// The state of a communicator, made if there is none yet; nullptr for handles that MPI would not accept.
Communicator* find_or_make(MPI_Comm comm) noexcept;

const Job& the_job() noexcept;
BetweenNodes& between_nodes() noexcept;

// After another selection: the next call asks for its algorithm again.
void forget_choices() noexcept;

// Calls of a collective that algorithms have served on this process, of communicators long gone too.
std::uint64_t replaced_calls(Collective collective) noexcept;

// Called after `child` was made from `parent`. `salt` as in identity::of_child.
void adopt(MPI_Comm parent, MPI_Comm child, trace::Origin origin, std::uint64_t salt) noexcept;
// The same of one that cannot be used yet, as MPI_Comm_idup makes it: it gets its state when it is. `child` is null
// where the handle is not there yet either.
void adopt_later(MPI_Comm parent, MPI_Comm child) noexcept;
// The same of one without a parent that all its ranks know. Nothing that is sent may depend on its identity: the ranks
// only count the creations of `salt` by the same members.
void adopt_orphan(MPI_Comm child, trace::Origin origin, std::uint64_t salt) noexcept;

// MPI_Comm_free and MPI_Comm_disconnect by `native`.
int free(MPI_Comm* comm, int (*native)(MPI_Comm*));

// The program has given the communicator another name.
void rename(MPI_Comm comm, std::string_view name) noexcept;

// Which communicator waits in `prepared`, which may be a phase of `whole`; for the stall report.
struct Owner {
  const Communicator* communicator;
  Collective collective;
  const Prepared* whole;
  bool one_node;  // it knows of every rank whether it has arrived
};
Owner owner_of(const Prepared* prepared) noexcept;

extern int keyval;

// The state, if it exists, by MPI's attribute.
Communicator* look_up(MPI_Comm comm) noexcept;

// The answer of the last look-up on this thread. A handle says nothing by itself, since MPI may give it to
// another communicator once this one is gone; but then the delete callback has run and has moved the
// generation on.
struct LastLookUp {
  MPI_Comm comm;
  std::uint64_t generation;  // 0: none
  Communicator* state;
};
extern thread_local LastLookUp last_look_up;
extern std::atomic<std::uint64_t> generation;  // counts deletions, from 1

// The state, if it exists: the path of every call.
inline Communicator* find(MPI_Comm comm) noexcept {
  const LastLookUp& last = last_look_up;
  // Relaxed: freeing a communicator on one thread while another calls on it is the program's error.
  if (last.generation == generation.load(std::memory_order_relaxed) && last.comm == comm) return last.state;
  return look_up(comm);
}

bool is_plausible(MPI_Comm comm) noexcept;

}  // namespace communicators

}  // namespace papaya
