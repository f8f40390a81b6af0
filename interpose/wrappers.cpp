// The wrappers papaya_MPI_X of every intercepted function, in all its forms: blocking, nonblocking and
// persistent, with int and with large counts. libpapaya.so finds them by name.

#include <mpi.h>

#include "base/saturating.hpp"
#include "interpose/dispatch.hpp"
#include "interpose/nonblocking.hpp"
#include "interpose/repeat.hpp"

#define PAPAYA_WRAPPER extern "C" __attribute__((visibility("default"))) int

namespace papaya {

namespace {

// Bytes of `count` elements; 0 where the arguments are not to be trusted, for MPI to say what is wrong with
// them.
std::uint64_t bytes_of_elements(std::uint64_t count, MPI_Datatype type) noexcept {
  if (count == 0) return 0;
  const std::int64_t element = element_bytes_of(type);
  return element > 0 ? saturating::product(count, static_cast<std::uint64_t>(element)) : 0;
}
std::uint64_t bytes_of(MPI_Count count, MPI_Datatype type) noexcept {
  return count > 0 ? bytes_of_elements(static_cast<std::uint64_t>(count), type) : 0;
}

template <class Count>
std::uint64_t sum_of(const Count* counts, int ranks, MPI_Datatype type) noexcept {
  if (counts == nullptr) return 0;
  std::uint64_t sum = 0;
  for (int i = 0; i < ranks; ++i) sum = saturating::sum(sum, counts[i] > 0 ? static_cast<std::uint64_t>(counts[i]) : 0);
  return bytes_of_elements(sum, type);
}

template <class Count>
std::uint64_t sum_of(const Count* counts, int ranks, const MPI_Datatype* types) noexcept {
  if (counts == nullptr || types == nullptr) return 0;
  std::uint64_t sum = 0;
  for (int i = 0; i < ranks; ++i) sum = saturating::sum(sum, bytes_of(counts[i], types[i]));
  return sum;
}

// What each collective calls its message (docs/trace_format.md). Arguments that MPI calls insignificant on
// this rank are not looked at; on inter-communicators roles differ and the size is left open.

Message message_barrier(const Communicator&) noexcept {
  return {};
}

template <class C>
Message message_bcast(const Communicator& state, C count, MPI_Datatype type, int root) noexcept {
  return {state.inter ? 0 : bytes_of(count, type), root};
}

template <class C>
Message message_gather(const Communicator& state, const void* send, C sendcount, MPI_Datatype sendtype, C recvcount,
                       MPI_Datatype recvtype, int root) noexcept {
  if (state.inter) return {0, root};
  const bool in_place = state.rank == root && send == MPI_IN_PLACE;
  return {in_place ? bytes_of(recvcount, recvtype) : bytes_of(sendcount, sendtype), root};
}

template <class C>
Message message_gatherv(const Communicator& state, const void* send, C sendcount, MPI_Datatype sendtype,
                        const C* recvcounts, MPI_Datatype recvtype, int root) noexcept {
  if (state.inter) return {0, root};
  const bool in_place = state.rank == root && send == MPI_IN_PLACE;
  if (!in_place) return {bytes_of(sendcount, sendtype), root};
  return {recvcounts == nullptr ? 0 : bytes_of(recvcounts[root], recvtype), root};
}

template <class C>
Message message_scatter(const Communicator& state, C sendcount, MPI_Datatype sendtype, C recvcount,
                        MPI_Datatype recvtype, int root) noexcept {
  if (state.inter) return {0, root};
  return {state.rank == root ? bytes_of(sendcount, sendtype) : bytes_of(recvcount, recvtype), root};
}

template <class C>
Message message_scatterv(const Communicator& state, const C* sendcounts, MPI_Datatype sendtype, C recvcount,
                         MPI_Datatype recvtype, int root) noexcept {
  if (state.inter) return {0, root};
  if (state.rank != root) return {bytes_of(recvcount, recvtype), root};
  return {sendcounts == nullptr ? 0 : bytes_of(sendcounts[root], sendtype), root};
}

template <class C>
Message message_allgather(const Communicator& state, const void* send, C sendcount, MPI_Datatype sendtype, C recvcount,
                          MPI_Datatype recvtype) noexcept {
  if (state.inter) return {};
  return {send == MPI_IN_PLACE ? bytes_of(recvcount, recvtype) : bytes_of(sendcount, sendtype)};
}

template <class C>
Message message_allgatherv(const Communicator& state, const void* send, C sendcount, MPI_Datatype sendtype,
                           const C* recvcounts, MPI_Datatype recvtype) noexcept {
  if (state.inter) return {};
  if (send != MPI_IN_PLACE) return {bytes_of(sendcount, sendtype)};
  return {recvcounts == nullptr ? 0 : bytes_of(recvcounts[state.rank], recvtype)};
}

template <class C>
Message message_alltoallv(const Communicator& state, const void* send, const C* sendcounts, MPI_Datatype sendtype,
                          const C* recvcounts, MPI_Datatype recvtype) noexcept {
  if (state.inter) return {};
  return {send == MPI_IN_PLACE ? sum_of(recvcounts, state.peers, recvtype) : sum_of(sendcounts, state.peers, sendtype)};
}

template <class C>
Message message_alltoallw(const Communicator& state, const void* send, const C* sendcounts,
                          const MPI_Datatype* sendtypes, const C* recvcounts, const MPI_Datatype* recvtypes) noexcept {
  if (state.inter) return {};
  return {send == MPI_IN_PLACE ? sum_of(recvcounts, state.peers, recvtypes)
                               : sum_of(sendcounts, state.peers, sendtypes)};
}

template <class C>
Message message_reduce(const Communicator& state, C count, MPI_Datatype type, int root) noexcept {
  return {state.inter ? 0 : bytes_of(count, type), root};
}

template <class C>
Message message_all(const Communicator&, C count, MPI_Datatype type) noexcept {
  return {bytes_of(count, type)};
}

template <class C>
Message message_reduce_scatter(const Communicator& state, const C* recvcounts, MPI_Datatype type) noexcept {
  return {state.inter ? 0 : sum_of(recvcounts, state.size, type)};
}

template <class C, class D>
Lists lists_of(const C* counts, const D* places) noexcept {
  return {counts, places, sizeof(C) > sizeof(int)};
}

constexpr auto never = [](Communicator&, const CallFacts&, Outcome&) noexcept { return false; };

}  // namespace

}  // namespace papaya

#define PAPAYA_REPLACE(Kind, ...)                                                                         \
  ([&](papaya::Communicator& state, const papaya::CallFacts& facts, papaya::Outcome& outcome) noexcept {  \
    return papaya::replace(state, {.collective = papaya::Collective::Kind, __VA_ARGS__}, facts, outcome); \
  })
// What may start the nonblocking call: of the collectives that have the row below, papaya; of the others MPI alone.
#define PAPAYA_BEGIN(Kind, ...)                                                                                     \
  ([&](papaya::Communicator& state, const papaya::CallFacts& facts, papaya::Outcome& outcome) noexcept {            \
    return papaya::nonblocking::begin(state, {.collective = papaya::Collective::Kind, __VA_ARGS__}, facts, outcome, \
                                      request);                                                                     \
  })
#define PAPAYA_START(kind) PAPAYA_START_##kind
#define PAPAYA_START_barrier PAPAYA_BEGIN(barrier, )
#define PAPAYA_START_bcast PAPAYA_BEGIN(bcast, .receive = buffer, .count = count, .type = datatype, .root = root)
#define PAPAYA_START_allreduce \
  PAPAYA_BEGIN(allreduce, .send = sendbuf, .receive = recvbuf, .count = count, .type = datatype, .op = op)
#define PAPAYA_START_gather papaya::never
#define PAPAYA_START_gatherv papaya::never
#define PAPAYA_START_scatter papaya::never
#define PAPAYA_START_scatterv papaya::never
#define PAPAYA_START_allgather papaya::never
#define PAPAYA_START_allgatherv papaya::never
#define PAPAYA_START_alltoall papaya::never
#define PAPAYA_START_alltoallv papaya::never
#define PAPAYA_START_alltoallw papaya::never
#define PAPAYA_START_reduce papaya::never
#define PAPAYA_START_reduce_scatter papaya::never
#define PAPAYA_START_reduce_scatter_block papaya::never
#define PAPAYA_START_scan papaya::never
#define PAPAYA_START_exscan papaya::never

#define PAPAYA_REPLACE_ALLTOALLV                                                                         \
  ([&](papaya::Communicator& state, const papaya::CallFacts& facts, papaya::Outcome& outcome) noexcept { \
    return papaya::replace_alltoallv(state,                                                              \
                                     {.collective = papaya::Collective::alltoallv,                       \
                                      .send = sendbuf,                                                   \
                                      .send_type = sendtype,                                             \
                                      .receive = recvbuf,                                                \
                                      .type = recvtype,                                                  \
                                      .send_lists = papaya::lists_of(sendcounts, sdispls),               \
                                      .lists = papaya::lists_of(recvcounts, rdispls)},                   \
                                     facts, outcome);                                                    \
  })
#define PAPAYA_REPLACE_BLOCKS(Kind)                                                                         \
  PAPAYA_REPLACE(Kind, .send = sendbuf, .send_count = sendcount, .send_type = sendtype, .receive = recvbuf, \
                 .count = recvcount, .type = recvtype)

// One collective: its parameters (C: the type of counts, D: of displacements), its arguments, and its
// Message. The last column is what may replace the blocking call.
#define PAPAYA_ROWS(ROW)                                                                                               \
  ROW(Bcast, Ibcast, bcast, BCAST, papaya::message_bcast(state, count, datatype, root),                                \
      PAPAYA_REPLACE(bcast, .receive = buffer, .count = count, .type = datatype, .root = root))                        \
  ROW(Gather, Igather, gather, GATHER,                                                                                 \
      papaya::message_gather(state, sendbuf, sendcount, sendtype, recvcount, recvtype, root), papaya::never)           \
  ROW(Gatherv, Igatherv, gatherv, GATHERV,                                                                             \
      papaya::message_gatherv(state, sendbuf, sendcount, sendtype, recvcounts, recvtype, root), papaya::never)         \
  ROW(Scatter, Iscatter, scatter, SCATTER,                                                                             \
      papaya::message_scatter(state, sendcount, sendtype, recvcount, recvtype, root), papaya::never)                   \
  ROW(Scatterv, Iscatterv, scatterv, SCATTERV,                                                                         \
      papaya::message_scatterv(state, sendcounts, sendtype, recvcount, recvtype, root), papaya::never)                 \
  ROW(Allgather, Iallgather, allgather, ALLGATHER,                                                                     \
      papaya::message_allgather(state, sendbuf, sendcount, sendtype, recvcount, recvtype),                             \
      PAPAYA_REPLACE_BLOCKS(allgather))                                                                                \
  ROW(Allgatherv, Iallgatherv, allgatherv, ALLGATHERV,                                                                 \
      papaya::message_allgatherv(state, sendbuf, sendcount, sendtype, recvcounts, recvtype), papaya::never)            \
  ROW(Alltoall, Ialltoall, alltoall, ALLTOALL,                                                                         \
      papaya::message_allgather(state, sendbuf, sendcount, sendtype, recvcount, recvtype),                             \
      PAPAYA_REPLACE_BLOCKS(alltoall))                                                                                 \
  ROW(Alltoallv, Ialltoallv, alltoallv, ALLTOALLV,                                                                     \
      papaya::message_alltoallv(state, sendbuf, sendcounts, sendtype, recvcounts, recvtype), PAPAYA_REPLACE_ALLTOALLV) \
  ROW(Alltoallw, Ialltoallw, alltoallw, ALLTOALLW,                                                                     \
      papaya::message_alltoallw(state, sendbuf, sendcounts, sendtypes, recvcounts, recvtypes), papaya::never)          \
  ROW(Reduce, Ireduce, reduce, REDUCE, papaya::message_reduce(state, count, datatype, root),                           \
      PAPAYA_REPLACE(reduce, .send = sendbuf, .receive = recvbuf, .count = count, .type = datatype, .op = op,          \
                     .root = root))                                                                                    \
  ROW(Allreduce, Iallreduce, allreduce, ALLREDUCE, papaya::message_all(state, count, datatype),                        \
      PAPAYA_REPLACE(allreduce, .send = sendbuf, .receive = recvbuf, .count = count, .type = datatype, .op = op))      \
  ROW(Reduce_scatter, Ireduce_scatter, reduce_scatter, REDUCE_SCATTER,                                                 \
      papaya::message_reduce_scatter(state, recvcounts, datatype), papaya::never)                                      \
  ROW(Reduce_scatter_block, Ireduce_scatter_block, reduce_scatter_block, REDUCE_SCATTER_BLOCK,                         \
      papaya::message_all(state, recvcount, datatype), papaya::never)                                                  \
  ROW(Scan, Iscan, scan, SCAN, papaya::message_all(state, count, datatype), papaya::never)                             \
  ROW(Exscan, Iexscan, exscan, SCAN, papaya::message_all(state, count, datatype), papaya::never)

#define BCAST_PARAMETERS(C, D) void *buffer, C count, MPI_Datatype datatype, int root, MPI_Comm comm
#define BCAST_ARGUMENTS buffer, count, datatype, root, comm
#define GATHER_PARAMETERS(C, D)                                                                               \
  const void *sendbuf, C sendcount, MPI_Datatype sendtype, void *recvbuf, C recvcount, MPI_Datatype recvtype, \
      int root, MPI_Comm comm
#define GATHER_ARGUMENTS sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm
#define GATHERV_PARAMETERS(C, D)                                                                                  \
  const void *sendbuf, C sendcount, MPI_Datatype sendtype, void *recvbuf, const C recvcounts[], const D displs[], \
      MPI_Datatype recvtype, int root, MPI_Comm comm
#define GATHERV_ARGUMENTS sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm
#define SCATTER_PARAMETERS GATHER_PARAMETERS
#define SCATTER_ARGUMENTS GATHER_ARGUMENTS
#define SCATTERV_PARAMETERS(C, D)                                                                                 \
  const void *sendbuf, const C sendcounts[], const D displs[], MPI_Datatype sendtype, void *recvbuf, C recvcount, \
      MPI_Datatype recvtype, int root, MPI_Comm comm
#define SCATTERV_ARGUMENTS sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm
#define ALLGATHER_PARAMETERS(C, D)                                                                            \
  const void *sendbuf, C sendcount, MPI_Datatype sendtype, void *recvbuf, C recvcount, MPI_Datatype recvtype, \
      MPI_Comm comm
#define ALLGATHER_ARGUMENTS sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm
#define ALLGATHERV_PARAMETERS(C, D)                                                                               \
  const void *sendbuf, C sendcount, MPI_Datatype sendtype, void *recvbuf, const C recvcounts[], const D displs[], \
      MPI_Datatype recvtype, MPI_Comm comm
#define ALLGATHERV_ARGUMENTS sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm
#define ALLTOALL_PARAMETERS ALLGATHER_PARAMETERS
#define ALLTOALL_ARGUMENTS ALLGATHER_ARGUMENTS
#define ALLTOALLV_PARAMETERS(C, D)                                                                    \
  const void *sendbuf, const C sendcounts[], const D sdispls[], MPI_Datatype sendtype, void *recvbuf, \
      const C recvcounts[], const D rdispls[], MPI_Datatype recvtype, MPI_Comm comm
#define ALLTOALLV_ARGUMENTS sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm
#define ALLTOALLW_PARAMETERS(C, D)                                                                             \
  const void *sendbuf, const C sendcounts[], const D sdispls[], const MPI_Datatype sendtypes[], void *recvbuf, \
      const C recvcounts[], const D rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm
#define ALLTOALLW_ARGUMENTS sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm
#define REDUCE_PARAMETERS(C, D) \
  const void *sendbuf, void *recvbuf, C count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm
#define REDUCE_ARGUMENTS sendbuf, recvbuf, count, datatype, op, root, comm
#define REDUCE_SCATTER_PARAMETERS(C, D) \
  const void *sendbuf, void *recvbuf, const C recvcounts[], MPI_Datatype datatype, MPI_Op op, MPI_Comm comm
#define REDUCE_SCATTER_ARGUMENTS sendbuf, recvbuf, recvcounts, datatype, op, comm
#define REDUCE_SCATTER_BLOCK_PARAMETERS(C, D) \
  const void *sendbuf, void *recvbuf, C recvcount, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm
#define REDUCE_SCATTER_BLOCK_ARGUMENTS sendbuf, recvbuf, recvcount, datatype, op, comm
#define SCAN_PARAMETERS(C, D) \
  const void *sendbuf, void *recvbuf, C count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm
#define SCAN_ARGUMENTS sendbuf, recvbuf, count, datatype, op, comm
#define ALLREDUCE_PARAMETERS SCAN_PARAMETERS
#define ALLREDUCE_ARGUMENTS SCAN_ARGUMENTS

#define PAPAYA_CALL(Kind, FormName, MESSAGE, REPLACE, NATIVE)                                        \
  papaya::collective(                                                                                \
      papaya::Collective::Kind, papaya::Form::FormName, comm, __builtin_return_address(0),           \
      [&]([[maybe_unused]] const papaya::Communicator& state) noexcept { return MESSAGE; }, REPLACE, \
      [&]() { return NATIVE; })

// MPI's own, the call that the program has made.
#define PAPAYA_NATIVE(CALL)                          \
  [&] {                                              \
    const papaya::nonblocking::InsideMpi inside_mpi; \
    return CALL;                                     \
  }()

#define PAPAYA_BLOCKING(Name, iname, kind, SHAPE, MESSAGE, REPLACE)                                      \
  PAPAYA_WRAPPER papaya_MPI_##Name(SHAPE##_PARAMETERS(int, int)) {                                       \
    return PAPAYA_CALL(kind, blocking, MESSAGE, REPLACE, PAPAYA_NATIVE(PMPI_##Name(SHAPE##_ARGUMENTS))); \
  }
#define PAPAYA_NONBLOCKING(Name, iname, kind, SHAPE, MESSAGE, REPLACE)                                            \
  PAPAYA_WRAPPER papaya_MPI_##iname(SHAPE##_PARAMETERS(int, int), MPI_Request* request) {                         \
    return PAPAYA_CALL(kind, nonblocking, MESSAGE, PAPAYA_START(kind), PMPI_##iname(SHAPE##_ARGUMENTS, request)); \
  }
PAPAYA_ROWS(PAPAYA_BLOCKING)
PAPAYA_ROWS(PAPAYA_NONBLOCKING)

PAPAYA_WRAPPER papaya_MPI_Barrier(MPI_Comm comm) {
  return PAPAYA_CALL(barrier, blocking, papaya::message_barrier(state), PAPAYA_REPLACE(barrier, ),
                     PAPAYA_NATIVE(PMPI_Barrier(comm)));
}
PAPAYA_WRAPPER papaya_MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return PAPAYA_CALL(barrier, nonblocking, papaya::message_barrier(state), PAPAYA_START(barrier),
                     PMPI_Ibarrier(comm, request));
}

#if MPI_VERSION >= 4
#define PAPAYA_BLOCKING_LARGE(Name, iname, kind, SHAPE, MESSAGE, REPLACE)                                    \
  PAPAYA_WRAPPER papaya_MPI_##Name##_c(SHAPE##_PARAMETERS(MPI_Count, MPI_Aint)) {                            \
    return PAPAYA_CALL(kind, blocking, MESSAGE, REPLACE, PAPAYA_NATIVE(PMPI_##Name##_c(SHAPE##_ARGUMENTS))); \
  }
#define PAPAYA_NONBLOCKING_LARGE(Name, iname, kind, SHAPE, MESSAGE, REPLACE)                                          \
  PAPAYA_WRAPPER papaya_MPI_##iname##_c(SHAPE##_PARAMETERS(MPI_Count, MPI_Aint), MPI_Request* request) {              \
    return PAPAYA_CALL(kind, nonblocking, MESSAGE, PAPAYA_START(kind), PMPI_##iname##_c(SHAPE##_ARGUMENTS, request)); \
  }
#define PAPAYA_PERSISTENT(Name, iname, kind, SHAPE, MESSAGE, REPLACE)                                          \
  PAPAYA_WRAPPER papaya_MPI_##Name##_init(SHAPE##_PARAMETERS(int, int), MPI_Info info, MPI_Request* request) { \
    return PAPAYA_CALL(kind, persistent, MESSAGE, papaya::never,                                               \
                       PMPI_##Name##_init(SHAPE##_ARGUMENTS, info, request));                                  \
  }
#define PAPAYA_PERSISTENT_LARGE(Name, iname, kind, SHAPE, MESSAGE, REPLACE)                         \
  PAPAYA_WRAPPER papaya_MPI_##Name##_init_c(SHAPE##_PARAMETERS(MPI_Count, MPI_Aint), MPI_Info info, \
                                            MPI_Request* request) {                                 \
    return PAPAYA_CALL(kind, persistent, MESSAGE, papaya::never,                                    \
                       PMPI_##Name##_init_c(SHAPE##_ARGUMENTS, info, request));                     \
  }
PAPAYA_ROWS(PAPAYA_BLOCKING_LARGE)
PAPAYA_ROWS(PAPAYA_NONBLOCKING_LARGE)
PAPAYA_ROWS(PAPAYA_PERSISTENT)
PAPAYA_ROWS(PAPAYA_PERSISTENT_LARGE)

PAPAYA_WRAPPER papaya_MPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PAPAYA_CALL(barrier, persistent, papaya::message_barrier(state), papaya::never,
                     PMPI_Barrier_init(comm, info, request));
}
#endif

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
  papaya::stop();
  const int code = PMPI_Finalize();
  papaya::Watch::give_signal_back();
  return code;
}

PAPAYA_WRAPPER papaya_MPI_Abort(MPI_Comm comm, int code) {
  papaya::note_abort(code);
  return PMPI_Abort(comm, code);
}

// Communicators: `child` is the name of the parameter that holds the new one. The salt tells ways of creation
// apart that MPI does not order among each other.
namespace papaya {
namespace {

constexpr std::uint64_t group_salt = std::uint64_t{1} << 32;  // plus the tag

template <class Create>
int create(MPI_Comm parent, MPI_Comm* child, trace::Origin origin, std::uint64_t salt, Create&& make) {
  const nonblocking::InsideMpi inside_mpi;
  const int code = make();
  if (code != MPI_SUCCESS || !runtime().active.load(std::memory_order_acquire)) return code;
  const Entry entry;
  if (entry.is_outermost() && communicators::is_plausible(parent)) communicators::adopt(parent, *child, origin, salt);
  if (nonblocking::are_asked_for() && communicators::is_plausible(*child))
    if (Communicator* const state = communicators::find(*child)) nonblocking::add_queue(*state);
  return code;
}

}  // namespace
}  // namespace papaya

PAPAYA_WRAPPER papaya_MPI_Comm_free(MPI_Comm* comm) {
  return papaya::communicators::free(comm, PMPI_Comm_free);
}
PAPAYA_WRAPPER papaya_MPI_Comm_disconnect(MPI_Comm* comm) {
  return papaya::communicators::free(comm, PMPI_Comm_disconnect);
}
PAPAYA_WRAPPER papaya_MPI_Comm_set_name(MPI_Comm comm, const char* name) {
  const int code = PMPI_Comm_set_name(comm, name);
  if (code == MPI_SUCCESS && papaya::runtime().active.load(std::memory_order_acquire))
    papaya::communicators::rename(comm, name);
  return code;
}
PAPAYA_WRAPPER papaya_MPI_Comm_dup(MPI_Comm comm, MPI_Comm* child) {
  return papaya::create(comm, child, papaya::trace::Origin::dup, 0, [&] { return PMPI_Comm_dup(comm, child); });
}
PAPAYA_WRAPPER papaya_MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* child) {
  return papaya::create(comm, child, papaya::trace::Origin::dup, 0,
                        [&] { return PMPI_Comm_dup_with_info(comm, info, child); });
}
PAPAYA_WRAPPER papaya_MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* child) {
  return papaya::create(comm, child, papaya::trace::Origin::split, 0,
                        [&] { return PMPI_Comm_split(comm, color, key, child); });
}
PAPAYA_WRAPPER papaya_MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* child) {
  const auto origin = type == MPI_COMM_TYPE_SHARED ? papaya::trace::Origin::node_split : papaya::trace::Origin::split;
  return papaya::create(comm, child, origin, 0, [&] { return PMPI_Comm_split_type(comm, type, key, info, child); });
}
PAPAYA_WRAPPER papaya_MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* child) {
  return papaya::create(comm, child, papaya::trace::Origin::group, 0,
                        [&] { return PMPI_Comm_create(comm, group, child); });
}
PAPAYA_WRAPPER papaya_MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* child) {
  return papaya::create(comm, child, papaya::trace::Origin::group, papaya::group_salt + static_cast<std::uint32_t>(tag),
                        [&] { return PMPI_Comm_create_group(comm, group, tag, child); });
}
PAPAYA_WRAPPER papaya_MPI_Cart_create(MPI_Comm comm, int ndims, const int dims[], const int periods[], int reorder,
                                      MPI_Comm* child) {
  return papaya::create(comm, child, papaya::trace::Origin::grid, 0,
                        [&] { return PMPI_Cart_create(comm, ndims, dims, periods, reorder, child); });
}
PAPAYA_WRAPPER papaya_MPI_Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm* child) {
  return papaya::create(comm, child, papaya::trace::Origin::grid, 0,
                        [&] { return PMPI_Cart_sub(comm, remain_dims, child); });
}
PAPAYA_WRAPPER papaya_MPI_Graph_create(MPI_Comm comm, int nnodes, const int index[], const int edges[], int reorder,
                                       MPI_Comm* child) {
  return papaya::create(comm, child, papaya::trace::Origin::graph, 0,
                        [&] { return PMPI_Graph_create(comm, nnodes, index, edges, reorder, child); });
}
PAPAYA_WRAPPER papaya_MPI_Dist_graph_create(MPI_Comm comm, int n, const int sources[], const int degrees[],
                                            const int destinations[], const int weights[], MPI_Info info, int reorder,
                                            MPI_Comm* child) {
  return papaya::create(comm, child, papaya::trace::Origin::graph, 0, [&] {
    return PMPI_Dist_graph_create(comm, n, sources, degrees, destinations, weights, info, reorder, child);
  });
}
PAPAYA_WRAPPER papaya_MPI_Dist_graph_create_adjacent(MPI_Comm comm, int indegree, const int sources[],
                                                     const int sourceweights[], int outdegree, const int destinations[],
                                                     const int destweights[], MPI_Info info, int reorder,
                                                     MPI_Comm* child) {
  return papaya::create(comm, child, papaya::trace::Origin::graph, 0, [&] {
    return PMPI_Dist_graph_create_adjacent(comm, indegree, sources, sourceweights, outdegree, destinations, destweights,
                                           info, reorder, child);
  });
}
