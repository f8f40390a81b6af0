/* Preloaded beside papaya: counts the calls that reach MPI of the functions whose nonblocking forms have faults. In
   front of papaya those that papaya makes for itself (PMPI_X), and with BEHIND those of the program that it hands on
   (MPI_X). The program finds the counters by their names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

#ifdef BEHIND
#define TAKEN(name) MPI_##name
#define NAME(name) "MPI_" name
extern int native_calls, native_nonblocking_calls;
#else
#define TAKEN(name) PMPI_##name
#define NAME(name) "PMPI_" name
int native_calls, native_nonblocking_calls;
#endif

static void* next(const char* name) {
  return dlsym(RTLD_NEXT, name);
}

static int is_between_groups(MPI_Comm comm) {
  int inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  return inter;
}

int TAKEN(Alltoallv)(const void* send, const int* to, const int* from_here, MPI_Datatype type, void* receive,
                     const int* from, const int* to_here, MPI_Datatype received, MPI_Comm comm) {
  ++native_calls;
  int (*function)(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*, MPI_Datatype,
                  MPI_Comm) = next(NAME("Alltoallv"));
  return function(send, to, from_here, type, receive, from, to_here, received, comm);
}

int TAKEN(Ialltoallv)(const void* send, const int* to, const int* from_here, MPI_Datatype type, void* receive,
                      const int* from, const int* to_here, MPI_Datatype received, MPI_Comm comm, MPI_Request* request) {
  ++native_nonblocking_calls;
  int (*function)(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*, MPI_Datatype,
                  MPI_Comm, MPI_Request*) = next(NAME("Ialltoallv"));
  return function(send, to, from_here, type, receive, from, to_here, received, comm, request);
}

/* papaya has collectives of its own, but none between groups. */
int TAKEN(Bcast)(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  native_calls += is_between_groups(comm);
  int (*function)(void*, int, MPI_Datatype, int, MPI_Comm) = next(NAME("Bcast"));
  return function(buffer, count, type, root, comm);
}

int TAKEN(Ibcast)(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  native_nonblocking_calls += is_between_groups(comm);
  int (*function)(void*, int, MPI_Datatype, int, MPI_Comm, MPI_Request*) = next(NAME("Ibcast"));
  return function(buffer, count, type, root, comm, request);
}
