// The collectives, in all their forms: blocking, nonblocking and persistent, with int and with large counts.

#include "interpose/wrappers.hpp"

#include "interpose/call_shapes.hpp"
#include "interpose/message.hpp"
#include "interpose/mpi_features.hpp"
#include "interpose/next.hpp"
#include "interpose/nonblocking.hpp"
#include "interpose/repeat.hpp"
#include "interpose/replace_alltoallv.hpp"

namespace papaya {

namespace {

template <class C, class D>
Lists lists_of(const C* counts, const D* displacements) noexcept {
  return {counts, displacements, sizeof(C) > sizeof(int)};
}

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
#define PAPAYA_REPLACE_REDUCE_SCATTER                                                                    \
  ([&](papaya::Communicator& state, const papaya::CallFacts& facts, papaya::Outcome& outcome) noexcept { \
    const papaya::Lists lists{recvcounts, nullptr, sizeof *recvcounts > sizeof(int)};                    \
    return papaya::replace(state,                                                                        \
                           {.collective = papaya::Collective::reduce_scatter,                            \
                            .send = sendbuf,                                                             \
                            .receive = recvbuf,                                                          \
                            .count = papaya::sum_of(lists, state.size),                                  \
                            .type = datatype,                                                            \
                            .op = op,                                                                    \
                            .lists = lists},                                                             \
                           facts, outcome);                                                              \
  })
#define PAPAYA_REPLACE_ALLGATHERV                                                                        \
  ([&](papaya::Communicator& state, const papaya::CallFacts& facts, papaya::Outcome& outcome) noexcept { \
    const papaya::Lists lists = papaya::lists_of(recvcounts, displs);                                    \
    return papaya::replace(state,                                                                        \
                           {.collective = papaya::Collective::allgatherv,                                \
                            .send = sendbuf,                                                             \
                            .send_count = sendcount,                                                     \
                            .send_type = sendtype,                                                       \
                            .receive = recvbuf,                                                          \
                            .count = papaya::sum_of(lists, state.size),                                  \
                            .type = recvtype,                                                            \
                            .lists = lists},                                                             \
                           facts, outcome);                                                              \
  })
// On every rank the block's count and type are those that are significant there.
#define PAPAYA_REPLACE_GATHER                                                                            \
  ([&](papaya::Communicator& state, const papaya::CallFacts& facts, papaya::Outcome& outcome) noexcept { \
    const bool is_root = state.rank == root;                                                             \
    return papaya::replace(state,                                                                        \
                           {.collective = papaya::Collective::gather,                                    \
                            .send = sendbuf,                                                             \
                            .send_count = sendcount,                                                     \
                            .send_type = sendtype,                                                       \
                            .receive = recvbuf,                                                          \
                            .count = is_root ? recvcount : sendcount,                                    \
                            .type = is_root ? recvtype : sendtype,                                       \
                            .root = root},                                                               \
                           facts, outcome);                                                              \
  })
#define PAPAYA_REPLACE_SCATTER                                                                           \
  ([&](papaya::Communicator& state, const papaya::CallFacts& facts, papaya::Outcome& outcome) noexcept { \
    const bool is_root = state.rank == root;                                                             \
    const bool in_place = is_root && recvbuf == MPI_IN_PLACE;                                            \
    return papaya::replace(state,                                                                        \
                           {.collective = papaya::Collective::scatter,                                   \
                            .send = is_root ? sendbuf : nullptr,                                         \
                            .send_count = is_root ? sendcount : recvcount,                               \
                            .send_type = is_root ? sendtype : recvtype,                                  \
                            .receive = recvbuf,                                                          \
                            .count = in_place ? sendcount : recvcount,                                   \
                            .type = in_place ? sendtype : recvtype,                                      \
                            .root = root},                                                               \
                           facts, outcome);                                                              \
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
      papaya::message_gather(state, sendbuf, sendcount, sendtype, recvcount, recvtype, root), PAPAYA_REPLACE_GATHER)   \
  ROW(Gatherv, Igatherv, gatherv, GATHERV,                                                                             \
      papaya::message_gatherv(state, sendbuf, sendcount, sendtype, recvcounts, recvtype, root), papaya::never)         \
  ROW(Scatter, Iscatter, scatter, SCATTER,                                                                             \
      papaya::message_scatter(state, sendcount, sendtype, recvcount, recvtype, root), PAPAYA_REPLACE_SCATTER)          \
  ROW(Scatterv, Iscatterv, scatterv, SCATTERV,                                                                         \
      papaya::message_scatterv(state, sendcounts, sendtype, recvcount, recvtype, root), papaya::never)                 \
  ROW(Allgather, Iallgather, allgather, ALLGATHER,                                                                     \
      papaya::message_allgather(state, sendbuf, sendcount, sendtype, recvcount, recvtype),                             \
      PAPAYA_REPLACE_BLOCKS(allgather))                                                                                \
  ROW(Allgatherv, Iallgatherv, allgatherv, ALLGATHERV,                                                                 \
      papaya::message_allgatherv(state, sendbuf, sendcount, sendtype, recvcounts, recvtype),                           \
      PAPAYA_REPLACE_ALLGATHERV)                                                                                       \
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
      papaya::message_reduce_scatter(state, recvcounts, datatype), PAPAYA_REPLACE_REDUCE_SCATTER)                      \
  ROW(Reduce_scatter_block, Ireduce_scatter_block, reduce_scatter_block, REDUCE_SCATTER_BLOCK,                         \
      papaya::message_all(state, recvcount, datatype),                                                                 \
      PAPAYA_REPLACE(reduce_scatter_block, .send = sendbuf, .receive = recvbuf, .count = recvcount, .type = datatype,  \
                     .op = op))                                                                                        \
  ROW(Scan, Iscan, scan, SCAN, papaya::message_all(state, count, datatype), papaya::never)                             \
  ROW(Exscan, Iexscan, exscan, SCAN, papaya::message_all(state, count, datatype), papaya::never)

#define PAPAYA_BLOCKING(Name, iname, kind, SHAPE, MESSAGE, REPLACE)                                            \
  PAPAYA_WRAPPER papaya_MPI_##Name(SHAPE##_PARAMETERS(int, int)) {                                             \
    return PAPAYA_CALL(kind, blocking, MESSAGE, REPLACE, PAPAYA_NATIVE(PAPAYA_NEXT(Name)(SHAPE##_ARGUMENTS))); \
  }
#define PAPAYA_NONBLOCKING(Name, iname, kind, SHAPE, MESSAGE, REPLACE)                    \
  PAPAYA_WRAPPER papaya_MPI_##iname(SHAPE##_PARAMETERS(int, int), MPI_Request* request) { \
    return PAPAYA_CALL(kind, nonblocking, MESSAGE, PAPAYA_START(kind),                    \
                       PAPAYA_NEXT(iname)(SHAPE##_ARGUMENTS, request));                   \
  }
PAPAYA_ROWS(PAPAYA_BLOCKING)
PAPAYA_ROWS(PAPAYA_NONBLOCKING)

PAPAYA_WRAPPER papaya_MPI_Barrier(MPI_Comm comm) {
  return PAPAYA_CALL(barrier, blocking, papaya::message_barrier(state), PAPAYA_REPLACE(barrier, ),
                     PAPAYA_NATIVE(PAPAYA_NEXT(Barrier)(comm)));
}
PAPAYA_WRAPPER papaya_MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return PAPAYA_CALL(barrier, nonblocking, papaya::message_barrier(state), PAPAYA_START(barrier),
                     PAPAYA_NEXT(Ibarrier)(comm, request));
}

#if PAPAYA_HAS_LARGE_COUNTS
#define PAPAYA_BLOCKING_LARGE(Name, iname, kind, SHAPE, MESSAGE, REPLACE)                                          \
  PAPAYA_WRAPPER papaya_MPI_##Name##_c(SHAPE##_PARAMETERS(MPI_Count, MPI_Aint)) {                                  \
    return PAPAYA_CALL(kind, blocking, MESSAGE, REPLACE, PAPAYA_NATIVE(PAPAYA_NEXT(Name##_c)(SHAPE##_ARGUMENTS))); \
  }
#define PAPAYA_NONBLOCKING_LARGE(Name, iname, kind, SHAPE, MESSAGE, REPLACE)                             \
  PAPAYA_WRAPPER papaya_MPI_##iname##_c(SHAPE##_PARAMETERS(MPI_Count, MPI_Aint), MPI_Request* request) { \
    return PAPAYA_CALL(kind, nonblocking, MESSAGE, PAPAYA_START(kind),                                   \
                       PAPAYA_NEXT(iname##_c)(SHAPE##_ARGUMENTS, request));                              \
  }
#define PAPAYA_PERSISTENT_LARGE(Name, iname, kind, SHAPE, MESSAGE, REPLACE)                                \
  PAPAYA_WRAPPER papaya_MPI_##Name##_init_c(SHAPE##_PARAMETERS(MPI_Count, MPI_Aint), MPI_Info info,        \
                                            MPI_Request* request) {                                        \
    return PAPAYA_INITIALISE(kind, MESSAGE, PAPAYA_NEXT(Name##_init_c)(SHAPE##_ARGUMENTS, info, request)); \
  }
PAPAYA_ROWS(PAPAYA_BLOCKING_LARGE)
PAPAYA_ROWS(PAPAYA_NONBLOCKING_LARGE)
PAPAYA_ROWS(PAPAYA_PERSISTENT_LARGE)
#endif

#if PAPAYA_HAS_PERSISTENT_COLLECTIVES
#define PAPAYA_PERSISTENT(Name, iname, kind, SHAPE, MESSAGE, REPLACE)                                          \
  PAPAYA_WRAPPER papaya_MPI_##Name##_init(SHAPE##_PARAMETERS(int, int), MPI_Info info, MPI_Request* request) { \
    return PAPAYA_INITIALISE(kind, MESSAGE, PAPAYA_NEXT(Name##_init)(SHAPE##_ARGUMENTS, info, request));       \
  }
PAPAYA_ROWS(PAPAYA_PERSISTENT)

PAPAYA_WRAPPER papaya_MPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PAPAYA_INITIALISE(barrier, papaya::message_barrier(state), PAPAYA_NEXT(Barrier_init)(comm, info, request));
}
#endif
