/* Preloaded beside papaya: counts the calls that reach MPI of the functions whose nonblocking forms have faults. The
   program finds the counters by their names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

int native_calls, native_nonblocking_calls;

static void* next(const char* name) {
  return dlsym(RTLD_NEXT, name);
}

static int is_between_groups(MPI_Comm comm) {
  int inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  return inter;
}

int PMPI_Alltoallv(const void* send, const int* to, const int* from_here, MPI_Datatype type, void* receive,
                   const int* from, const int* to_here, MPI_Datatype received, MPI_Comm comm) {
  ++native_calls;
  int (*function)(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*, MPI_Datatype,
                  MPI_Comm) = next("PMPI_Alltoallv");
  return function(send, to, from_here, type, receive, from, to_here, received, comm);
}

int PMPI_Ialltoallv(const void* send, const int* to, const int* from_here, MPI_Datatype type, void* receive,
                    const int* from, const int* to_here, MPI_Datatype received, MPI_Comm comm, MPI_Request* request) {
  ++native_nonblocking_calls;
  int (*function)(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*, MPI_Datatype,
                  MPI_Comm, MPI_Request*) = next("PMPI_Ialltoallv");
  return function(send, to, from_here, type, receive, from, to_here, received, comm, request);
}

/* papaya has collectives of its own, but none between groups. */
int PMPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  native_calls += is_between_groups(comm);
  int (*function)(void*, int, MPI_Datatype, int, MPI_Comm) = next("PMPI_Bcast");
  return function(buffer, count, type, root, comm);
}

int PMPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  native_nonblocking_calls += is_between_groups(comm);
  int (*function)(void*, int, MPI_Datatype, int, MPI_Comm, MPI_Request*) = next("PMPI_Ibcast");
  return function(buffer, count, type, root, comm, request);
}
