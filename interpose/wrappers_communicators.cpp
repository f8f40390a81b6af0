// The life cycle, and what makes and frees communicators.

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <string_view>

#include "interpose/background_progress.hpp"
#include "interpose/communicator.hpp"
#include "interpose/hints.hpp"
#include "interpose/lifecycle.hpp"
#include "interpose/mpi_features.hpp"
#include "interpose/next.hpp"
#include "interpose/nonblocking.hpp"
#include "interpose/peers.hpp"
#include "interpose/runtime.hpp"
#include "interpose/weak_calls.hpp"
#include "interpose/world.hpp"
#include "interpose/wrappers.hpp"

namespace papaya {
namespace {

bool is_active() noexcept {
  return runtime().active.load(std::memory_order_acquire);
}

}  // namespace
}  // namespace papaya

// Life cycle.

PAPAYA_WRAPPER papaya_MPI_Init(int* argc, char*** argv) {
  papaya::announce();
  const int code = papaya::background_progress::init(argc, argv);
  if (code == MPI_SUCCESS) papaya::start();
  return code;
}

PAPAYA_WRAPPER papaya_MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  papaya::announce();
  const int code = papaya::background_progress::init_thread(argc, argv, required, provided);
  if (code == MPI_SUCCESS) papaya::start();
  return code;
}

PAPAYA_WRAPPER papaya_MPI_Query_thread(int* provided) {
  return papaya::background_progress::query_thread(provided);
}

PAPAYA_WRAPPER papaya_MPI_Finalize() {
  if (!papaya::world::is_of_sessions())
    papaya::stop();
  else if (papaya::is_active())
    papaya::communicators::leave_world();
  papaya::weak_calls::before_finalize();
  const int code = PAPAYA_NEXT(Finalize)();
  papaya::Watch::give_signal_back();
  return code;
}

PAPAYA_WRAPPER papaya_MPI_Abort(MPI_Comm comm, int code) {
  papaya::note_abort(code);
  return PAPAYA_NEXT(Abort)(comm, code);
}

// Communicators: `child` is the name of the parameter that holds the new one. The salt tells ways of creation
// apart that MPI does not order among each other.
namespace papaya {
namespace {

constexpr std::uint64_t group_salt = std::uint64_t{1} << 32;  // plus the tag
constexpr std::uint64_t merge_salt = std::uint64_t{3} << 32;
constexpr std::uint64_t inter_salt = std::uint64_t{4} << 32;  // the same
constexpr std::uint64_t spawn_salt = std::uint64_t{5} << 32;

template <class Create>
int create(MPI_Comm parent, MPI_Comm* child, trace::Origin origin, std::uint64_t salt, Create&& make) {
  const nonblocking::InsideMpi inside_mpi;
  const int code = make();
  if (code != MPI_SUCCESS || !is_active()) return code;
  const Entry entry;
  if (entry.is_outermost() && communicators::is_plausible(parent)) communicators::adopt(parent, *child, origin, salt);
  if (nonblocking::are_asked_for() && communicators::is_plausible(*child))
    if (Communicator* const state = communicators::find(*child)) nonblocking::add_queue(*state);
  return code;
}

// MPI_Comm_idup and the like: `child` is there when a request completes, and its handle then or now.
template <class Create>
int create_later(MPI_Comm parent, MPI_Comm* child, Create&& make) {
  const bool is_followed = is_active();
  if (is_followed && child != nullptr) *child = MPI_COMM_NULL;  // what it held tells nothing afterwards
  const int code = make();
  if (code != MPI_SUCCESS || !is_followed) return code;
  const Entry entry;
  if (entry.is_outermost() && communicators::is_plausible(parent)) communicators::adopt_later(parent, *child);
  return code;
}

// After two groups have become one, or a communicator has come without a parent.
int adopt(int code, const MPI_Comm* child, trace::Origin origin, std::uint64_t salt) {
  if (code != MPI_SUCCESS || !is_active()) return code;
  const Entry entry;
  if (entry.is_outermost()) communicators::adopt_orphan(*child, origin, salt);
  return code;
}

// The state of a communicator whose hints may be looked at; else null.
Communicator* with_hints(MPI_Comm comm) noexcept {
  return communicators::is_plausible(comm) ? communicators::find_or_make(comm) : nullptr;
}

// After the function that took `info`.
int take_hints(int code, const MPI_Comm* comm, MPI_Info info) {
  if (code != MPI_SUCCESS || !is_active()) return code;
  const Entry entry;
  if (!entry.is_outermost()) return code;
  if (Communicator* const state = with_hints(*comm)) hints::take(*state, info);
  return code;
}

// Collective as well, so that it may wait for what has been started on the communicator.
int free(MPI_Comm* comm, int (*native)(MPI_Comm*)) {
  if (nonblocking::are_asked_for() && comm != nullptr && *comm != MPI_COMM_WORLD && communicators::is_plausible(*comm))
    if (Communicator* const state = communicators::find(*comm)) nonblocking::remove_queue(*state);
  peers::forget_communicators();
  return communicators::free(comm, native);
}

}  // namespace
}  // namespace papaya

PAPAYA_WRAPPER papaya_MPI_Comm_free(MPI_Comm* comm) {
  return papaya::free(comm, PAPAYA_NEXT(Comm_free));
}
PAPAYA_WRAPPER papaya_MPI_Comm_disconnect(MPI_Comm* comm) {
  return papaya::free(comm, PAPAYA_NEXT(Comm_disconnect));
}
PAPAYA_WRAPPER papaya_MPI_Comm_set_name(MPI_Comm comm, const char* name) {
  const int code = PAPAYA_NEXT(Comm_set_name)(comm, name);
  if (code == MPI_SUCCESS && papaya::is_active()) papaya::communicators::rename(comm, name);
  return code;
}
PAPAYA_WRAPPER papaya_MPI_Comm_set_info(MPI_Comm comm, MPI_Info info) {
  return papaya::take_hints(PAPAYA_NEXT(Comm_set_info)(comm, info), &comm, info);
}
PAPAYA_WRAPPER papaya_MPI_Comm_get_info(MPI_Comm comm, MPI_Info* info) {
  const int code = PAPAYA_NEXT(Comm_get_info)(comm, info);
  if (code != MPI_SUCCESS || !papaya::is_active()) return code;
  if (const papaya::Communicator* const state = papaya::with_hints(comm)) papaya::hints::tell(*state, *info);
  return code;
}
PAPAYA_WRAPPER papaya_MPI_Comm_dup(MPI_Comm comm, MPI_Comm* child) {
  const int code =
      papaya::create(comm, child, papaya::trace::Origin::dup, 0, [&] { return PAPAYA_NEXT(Comm_dup)(comm, child); });
  if (code != MPI_SUCCESS || !papaya::is_active()) return code;
  const papaya::Communicator* const parent = papaya::with_hints(comm);
  papaya::Communicator* const copy = papaya::with_hints(*child);
  if (parent != nullptr && copy != nullptr) papaya::hints::inherit(*parent, *copy);
  return code;
}
PAPAYA_WRAPPER papaya_MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* child) {
  const int code = papaya::create(comm, child, papaya::trace::Origin::dup, 0,
                                  [&] { return PAPAYA_NEXT(Comm_dup_with_info)(comm, info, child); });
  return papaya::take_hints(code, child, info);
}
PAPAYA_WRAPPER papaya_MPI_Comm_idup(MPI_Comm comm, MPI_Comm* child, MPI_Request* request) {
  return papaya::create_later(comm, child, [&] { return PAPAYA_NEXT(Comm_idup)(comm, child, request); });
}
PAPAYA_WRAPPER papaya_MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* child) {
  return papaya::create(comm, child, papaya::trace::Origin::split, 0,
                        [&] { return PAPAYA_NEXT(Comm_split)(comm, color, key, child); });
}
PAPAYA_WRAPPER papaya_MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* child) {
  const auto origin = type == MPI_COMM_TYPE_SHARED ? papaya::trace::Origin::node_split : papaya::trace::Origin::split;
  const int code = papaya::create(comm, child, origin, 0,
                                  [&] { return PAPAYA_NEXT(Comm_split_type)(comm, type, key, info, child); });
  return papaya::take_hints(code, child, info);
}
PAPAYA_WRAPPER papaya_MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* child) {
  return papaya::create(comm, child, papaya::trace::Origin::group, 0,
                        [&] { return PAPAYA_NEXT(Comm_create)(comm, group, child); });
}
PAPAYA_WRAPPER papaya_MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* child) {
  return papaya::create(comm, child, papaya::trace::Origin::group, papaya::group_salt + static_cast<std::uint32_t>(tag),
                        [&] { return PAPAYA_NEXT(Comm_create_group)(comm, group, tag, child); });
}
PAPAYA_WRAPPER papaya_MPI_Cart_create(MPI_Comm comm, int ndims, const int dims[], const int periods[], int reorder,
                                      MPI_Comm* child) {
  return papaya::create(comm, child, papaya::trace::Origin::grid, 0,
                        [&] { return PAPAYA_NEXT(Cart_create)(comm, ndims, dims, periods, reorder, child); });
}
PAPAYA_WRAPPER papaya_MPI_Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm* child) {
  return papaya::create(comm, child, papaya::trace::Origin::grid, 0,
                        [&] { return PAPAYA_NEXT(Cart_sub)(comm, remain_dims, child); });
}
PAPAYA_WRAPPER papaya_MPI_Graph_create(MPI_Comm comm, int nnodes, const int index[], const int edges[], int reorder,
                                       MPI_Comm* child) {
  return papaya::create(comm, child, papaya::trace::Origin::graph, 0,
                        [&] { return PAPAYA_NEXT(Graph_create)(comm, nnodes, index, edges, reorder, child); });
}
PAPAYA_WRAPPER papaya_MPI_Dist_graph_create(MPI_Comm comm, int n, const int sources[], const int degrees[],
                                            const int destinations[], const int weights[], MPI_Info info, int reorder,
                                            MPI_Comm* child) {
  return papaya::create(comm, child, papaya::trace::Origin::graph, 0, [&] {
    return PAPAYA_NEXT(Dist_graph_create)(comm, n, sources, degrees, destinations, weights, info, reorder, child);
  });
}
PAPAYA_WRAPPER papaya_MPI_Dist_graph_create_adjacent(MPI_Comm comm, int indegree, const int sources[],
                                                     const int sourceweights[], int outdegree, const int destinations[],
                                                     const int destweights[], MPI_Info info, int reorder,
                                                     MPI_Comm* child) {
  return papaya::create(comm, child, papaya::trace::Origin::graph, 0, [&] {
    return PAPAYA_NEXT(Dist_graph_create_adjacent)(comm, indegree, sources, sourceweights, outdegree, destinations,
                                                   destweights, info, reorder, child);
  });
}
PAPAYA_WRAPPER papaya_MPI_Intercomm_create(MPI_Comm comm, int leader, MPI_Comm peer, int remote_leader, int tag,
                                           MPI_Comm* child) {
  return papaya::create(comm, child, papaya::trace::Origin::inter, papaya::inter_salt + static_cast<std::uint32_t>(tag),
                        [&] { return PAPAYA_NEXT(Intercomm_create)(comm, leader, peer, remote_leader, tag, child); });
}
PAPAYA_WRAPPER papaya_MPI_Intercomm_merge(MPI_Comm comm, int high, MPI_Comm* child) {
  const papaya::nonblocking::InsideMpi inside_mpi;
  const int code = PAPAYA_NEXT(Intercomm_merge)(comm, high, child);
  return papaya::adopt(code, child, papaya::trace::Origin::merge, papaya::merge_salt);
}
PAPAYA_WRAPPER papaya_MPI_Comm_spawn(const char* command, char* argv[], int maxprocs, MPI_Info info, int root,
                                     MPI_Comm comm, MPI_Comm* child, int errcodes[]) {
  return papaya::create(comm, child, papaya::trace::Origin::inter, papaya::spawn_salt, [&] {
    return PAPAYA_NEXT(Comm_spawn)(command, argv, maxprocs, info, root, comm, child, errcodes);
  });
}
PAPAYA_WRAPPER papaya_MPI_Comm_spawn_multiple(int count, char* commands[], char** argvs[], const int maxprocs[],
                                              const MPI_Info infos[], int root, MPI_Comm comm, MPI_Comm* child,
                                              int errcodes[]) {
  return papaya::create(comm, child, papaya::trace::Origin::inter, papaya::spawn_salt, [&] {
    return PAPAYA_NEXT(Comm_spawn_multiple)(count, commands, argvs, maxprocs, infos, root, comm, child, errcodes);
  });
}
PAPAYA_WRAPPER papaya_MPI_Comm_accept(const char* port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* child) {
  return papaya::create(comm, child, papaya::trace::Origin::inter, papaya::spawn_salt,
                        [&] { return PAPAYA_NEXT(Comm_accept)(port, info, root, comm, child); });
}
PAPAYA_WRAPPER papaya_MPI_Comm_connect(const char* port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* child) {
  return papaya::create(comm, child, papaya::trace::Origin::inter, papaya::spawn_salt,
                        [&] { return PAPAYA_NEXT(Comm_connect)(port, info, root, comm, child); });
}

#if PAPAYA_HAS_MPI_4
namespace papaya {
namespace {

// Tells creations from groups apart that MPI does not order among each other.
std::uint64_t salt_of(const char* tag) noexcept {
  constexpr std::uint64_t session_salt = std::uint64_t{6} << 32;
  return tag == nullptr ? session_salt : session_salt ^ std::hash<std::string_view>{}(tag);
}

}  // namespace
}  // namespace papaya

PAPAYA_WRAPPER papaya_MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
  papaya::announce();
  const int code = papaya::background_progress::session_init(info, errhandler, session);
  if (code == MPI_SUCCESS) papaya::note_session();
  return code;
}
PAPAYA_WRAPPER papaya_MPI_Session_finalize(MPI_Session* session) {
  if (session != nullptr && *session != MPI_SESSION_NULL) papaya::stop_in_session();
  return PAPAYA_NEXT(Session_finalize)(session);
}
PAPAYA_WRAPPER papaya_MPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* child, MPI_Request* request) {
  return papaya::create_later(comm, child,
                              [&] { return PAPAYA_NEXT(Comm_idup_with_info)(comm, info, child, request); });
}
PAPAYA_WRAPPER papaya_MPI_Comm_create_from_group(MPI_Group group, const char* tag, MPI_Info info,
                                                 MPI_Errhandler errhandler, MPI_Comm* child) {
  const int code = PAPAYA_NEXT(Comm_create_from_group)(group, tag, info, errhandler, child);
  if (code == MPI_SUCCESS && !papaya::is_active() && *child != MPI_COMM_NULL) papaya::start_in_session(*child);
  return papaya::adopt(code, child, papaya::trace::Origin::session, papaya::salt_of(tag));
}
PAPAYA_WRAPPER papaya_MPI_Intercomm_create_from_groups(MPI_Group group, int leader, MPI_Group remote_group,
                                                       int remote_leader, const char* tag, MPI_Info info,
                                                       MPI_Errhandler errhandler, MPI_Comm* child) {
  const int code = PAPAYA_NEXT(Intercomm_create_from_groups)(group, leader, remote_group, remote_leader, tag, info,
                                                             errhandler, child);
  return papaya::adopt(code, child, papaya::trace::Origin::inter, papaya::salt_of(tag));
}
#endif
