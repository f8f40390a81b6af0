// What the MPI that a flavour is built for has beyond MPI 3.1. Open MPI 5 calls itself 3.1 and has all of MPI 4.0 but
// large counts; Open MPI 4 has its persistent collectives, as an extension under other names (MPIX_Allreduce_init).
// libpapaya.so takes a function under either name (PAPAYA_RENAMED in symbols.def).
#pragma once

#include <mpi.h>

#define PAPAYA_HAS_LARGE_COUNTS (MPI_VERSION >= 4)

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define PAPAYA_HAS_MPI_4 1
#define PAPAYA_HAS_PERSISTENT_COLLECTIVES 1
#else
#define PAPAYA_HAS_MPI_4 0
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif
#if defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define PAPAYA_HAS_PERSISTENT_COLLECTIVES 1
// Of the same types; nobody calls them by this name.
extern "C" {
decltype(PMPIX_Barrier_init) PMPI_Barrier_init;
decltype(PMPIX_Bcast_init) PMPI_Bcast_init;
decltype(PMPIX_Gather_init) PMPI_Gather_init;
decltype(PMPIX_Gatherv_init) PMPI_Gatherv_init;
decltype(PMPIX_Scatter_init) PMPI_Scatter_init;
decltype(PMPIX_Scatterv_init) PMPI_Scatterv_init;
decltype(PMPIX_Allgather_init) PMPI_Allgather_init;
decltype(PMPIX_Allgatherv_init) PMPI_Allgatherv_init;
decltype(PMPIX_Alltoall_init) PMPI_Alltoall_init;
decltype(PMPIX_Alltoallv_init) PMPI_Alltoallv_init;
decltype(PMPIX_Alltoallw_init) PMPI_Alltoallw_init;
decltype(PMPIX_Reduce_init) PMPI_Reduce_init;
decltype(PMPIX_Allreduce_init) PMPI_Allreduce_init;
decltype(PMPIX_Reduce_scatter_init) PMPI_Reduce_scatter_init;
decltype(PMPIX_Reduce_scatter_block_init) PMPI_Reduce_scatter_block_init;
decltype(PMPIX_Scan_init) PMPI_Scan_init;
decltype(PMPIX_Exscan_init) PMPI_Exscan_init;
decltype(PMPIX_Neighbor_allgather_init) PMPI_Neighbor_allgather_init;
decltype(PMPIX_Neighbor_allgatherv_init) PMPI_Neighbor_allgatherv_init;
decltype(PMPIX_Neighbor_alltoall_init) PMPI_Neighbor_alltoall_init;
decltype(PMPIX_Neighbor_alltoallv_init) PMPI_Neighbor_alltoallv_init;
decltype(PMPIX_Neighbor_alltoallw_init) PMPI_Neighbor_alltoallw_init;
}
#else
#define PAPAYA_HAS_PERSISTENT_COLLECTIVES 0
#endif
#endif
