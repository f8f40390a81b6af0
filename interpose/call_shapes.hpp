// The parameters of collectives (C: the type of counts, D: of displacements) and how their wrappers go on: for those
// who write wrappers by rows.
#pragma once

#include <mpi.h>

#include "interpose/dispatch.hpp"
#include "interpose/nonblocking.hpp"
#include "interpose/persistent.hpp"

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

// The call that makes a persistent operation.
#define PAPAYA_INITIALISE(Kind, MESSAGE, NATIVE)                                                                      \
  papaya::persistent::initialise(                                                                                     \
      papaya::Collective::Kind, comm, __builtin_return_address(0),                                                    \
      [&]([[maybe_unused]] const papaya::Communicator& state) noexcept { return MESSAGE; }, [&]() { return NATIVE; }, \
      request)

// MPI's own, the call that the program has made.
#define PAPAYA_NATIVE(CALL)                          \
  [&] {                                              \
    const papaya::nonblocking::InsideMpi inside_mpi; \
    return CALL;                                     \
  }()
