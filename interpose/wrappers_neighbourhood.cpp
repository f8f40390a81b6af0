// Neighbourhood collectives, in all their forms: recorded, and MPI's own. A rank waits for its neighbours there, and
// papaya compares arrivals of whole communicators: for whom is not said.

#include <mpi.h>

#include "interpose/call_shapes.hpp"
#include "interpose/message.hpp"
#include "interpose/mpi_features.hpp"
#include "interpose/next.hpp"
#include "interpose/wrappers.hpp"

// Shapes, and Messages, are those of the collectives of all ranks, but for the displacements of the w form.
#define NEIGHBOR_ALLTOALLW_PARAMETERS(C, D)                                                                           \
  const void *sendbuf, const C sendcounts[], const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void *recvbuf, \
      const C recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm
#define NEIGHBOR_ALLTOALLW_ARGUMENTS ALLTOALLW_ARGUMENTS

#define PAPAYA_ROWS(ROW)                                                                \
  ROW(allgather, ALLGATHER, {papaya::bytes_of(sendcount, sendtype)})                    \
  ROW(allgatherv, ALLGATHERV, {papaya::bytes_of(sendcount, sendtype)})                  \
  ROW(alltoall, ALLTOALL, {papaya::bytes_of(sendcount, sendtype)})                      \
  ROW(alltoallv, ALLTOALLV, {papaya::sum_of(sendcounts, state.destinations, sendtype)}) \
  ROW(alltoallw, NEIGHBOR_ALLTOALLW, {papaya::sum_of(sendcounts, state.destinations, sendtypes)})

#define PAPAYA_MESSAGE(...) papaya::Message __VA_ARGS__

#define PAPAYA_BLOCKING(name, SHAPE, ...)                                                          \
  PAPAYA_WRAPPER papaya_MPI_Neighbor_##name(SHAPE##_PARAMETERS(int, int)) {                        \
    return PAPAYA_CALL(neighbor_##name, neighbourhood, PAPAYA_MESSAGE(__VA_ARGS__), papaya::never, \
                       PAPAYA_NATIVE(PAPAYA_NEXT(Neighbor_##name)(SHAPE##_ARGUMENTS)));            \
  }
#define PAPAYA_NONBLOCKING(name, SHAPE, ...)                                                       \
  PAPAYA_WRAPPER papaya_MPI_Ineighbor_##name(SHAPE##_PARAMETERS(int, int), MPI_Request* request) { \
    return PAPAYA_CALL(neighbor_##name, nonblocking, PAPAYA_MESSAGE(__VA_ARGS__), papaya::never,   \
                       PAPAYA_NEXT(Ineighbor_##name)(SHAPE##_ARGUMENTS, request));                 \
  }
PAPAYA_ROWS(PAPAYA_BLOCKING)
PAPAYA_ROWS(PAPAYA_NONBLOCKING)

#if PAPAYA_HAS_LARGE_COUNTS
#define PAPAYA_BLOCKING_LARGE(name, SHAPE, ...)                                                    \
  PAPAYA_WRAPPER papaya_MPI_Neighbor_##name##_c(SHAPE##_PARAMETERS(MPI_Count, MPI_Aint)) {         \
    return PAPAYA_CALL(neighbor_##name, neighbourhood, PAPAYA_MESSAGE(__VA_ARGS__), papaya::never, \
                       PAPAYA_NATIVE(PAPAYA_NEXT(Neighbor_##name##_c)(SHAPE##_ARGUMENTS)));        \
  }
#define PAPAYA_NONBLOCKING_LARGE(name, SHAPE, ...)                                                                \
  PAPAYA_WRAPPER papaya_MPI_Ineighbor_##name##_c(SHAPE##_PARAMETERS(MPI_Count, MPI_Aint), MPI_Request* request) { \
    return PAPAYA_CALL(neighbor_##name, nonblocking, PAPAYA_MESSAGE(__VA_ARGS__), papaya::never,                  \
                       PAPAYA_NEXT(Ineighbor_##name##_c)(SHAPE##_ARGUMENTS, request));                            \
  }
#define PAPAYA_PERSISTENT_LARGE(name, SHAPE, ...)                                                            \
  PAPAYA_WRAPPER papaya_MPI_Neighbor_##name##_init_c(SHAPE##_PARAMETERS(MPI_Count, MPI_Aint), MPI_Info info, \
                                                     MPI_Request* request) {                                 \
    return PAPAYA_INITIALISE(neighbor_##name, PAPAYA_MESSAGE(__VA_ARGS__),                                   \
                             PAPAYA_NEXT(Neighbor_##name##_init_c)(SHAPE##_ARGUMENTS, info, request));       \
  }
PAPAYA_ROWS(PAPAYA_BLOCKING_LARGE)
PAPAYA_ROWS(PAPAYA_NONBLOCKING_LARGE)
PAPAYA_ROWS(PAPAYA_PERSISTENT_LARGE)
#endif

#if PAPAYA_HAS_PERSISTENT_COLLECTIVES
#define PAPAYA_PERSISTENT(name, SHAPE, ...)                                                          \
  PAPAYA_WRAPPER papaya_MPI_Neighbor_##name##_init(SHAPE##_PARAMETERS(int, int), MPI_Info info,      \
                                                   MPI_Request* request) {                           \
    return PAPAYA_INITIALISE(neighbor_##name, PAPAYA_MESSAGE(__VA_ARGS__),                           \
                             PAPAYA_NEXT(Neighbor_##name##_init)(SHAPE##_ARGUMENTS, info, request)); \
  }
PAPAYA_ROWS(PAPAYA_PERSISTENT)
#endif
