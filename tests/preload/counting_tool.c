// A tool as others write them: it takes some of MPI's functions, counts them, and says how often in MPI_Finalize.
// Preloaded, or linked into a program. With NEXT it goes on to the function of the same name that comes next, else to
// PMPI_X.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef NEXT
#define GO_ON(name, ...) ((__typeof__(&MPI_##name))dlsym(RTLD_NEXT, "MPI_" #name))(__VA_ARGS__)
#else
#define GO_ON(name, ...) PMPI_##name(__VA_ARGS__)
#endif

static int initialised, allreduces, broadcasts, barriers, sends;

int MPI_Init(int* argc, char*** argv) {
  ++initialised;
#ifdef MORE_THREADS
  int provided;
  return PMPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
#else
  return GO_ON(Init, argc, argv);
#endif
}

int MPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  ++allreduces;
  return GO_ON(Allreduce, send, receive, count, type, op, comm);
}

int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  ++broadcasts;
  return GO_ON(Bcast, buffer, count, type, root, comm);
}

int MPI_Barrier(MPI_Comm comm) {
  const int code = GO_ON(Barrier, comm);  // no jump
  ++barriers;
  return code;
}

int MPI_Send(const void* buffer, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm) {
  ++sends;
  return GO_ON(Send, buffer, count, type, target, tag, comm);
}

// Calls of its own are no calls of the program.
int MPI_Finalize(void) {
  int rank, most = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Reduce(&allreduces, &most, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0 && most != allreduces) printf("FAILED: the tool's own reduction\n");
  printf(NAME " %d init=%d allreduce=%d bcast=%d barrier=%d send=%d\n", rank, initialised, allreduces, broadcasts,
         barriers, sends);
  fflush(stdout);
  return GO_ON(Finalize);
}
