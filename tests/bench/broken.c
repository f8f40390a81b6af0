// Stands in for the library in a test of the benchmark's own checks: its "broken" algorithms give wrong results, and so
// does what the benchmark takes for MPI's own of some collectives that papaya has no algorithms for.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <string.h>

static int broken;
static unsigned long calls;

__attribute__((visibility("default"))) int papaya_select(const char* collective, const char* selection) {
  broken = strcmp(collective, "allreduce") == 0 && strcmp(selection, "auto") != 0;
  return strcmp(selection, "arrival_tree") == 0;  // not taken
}

__attribute__((visibility("default"))) unsigned long papaya_replaced(const char* collective) {
  return strcmp(collective, "allreduce") == 0 ? calls : 0;
}

int MPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const int code = PMPI_Allreduce(send, receive, count, type, op, comm);
  if (broken) {
    ((double*)receive)[count / 2] += 1;
    ++calls;
  }
  return code;
}

// The nonblocking one completes with a wrong result, and MPI_Alltoallv changes a byte of its last block.
int MPI_Iallreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
  const int code = PMPI_Allreduce(send, receive, count, type, op, comm);
  ((double*)receive)[count - 1] += 1;
  PMPI_Ibarrier(comm, request);
  return code;
}

int MPI_Alltoallv(const void* send, const int* send_counts, const int* send_places, MPI_Datatype send_type,
                  void* receive, const int* counts, const int* places, MPI_Datatype type, MPI_Comm comm) {
  int ranks = 0;
  PMPI_Comm_size(comm, &ranks);
  const int code = PMPI_Alltoallv(send, send_counts, send_places, send_type, receive, counts, places, type, comm);
  ((char*)receive)[places[ranks - 1]] ^= 1;
  return code;
}

// MPI's own functions are those of the library with this one, or of what that needs.
int MPI_Get_library_version(char* version, int* length) {
  return PMPI_Get_library_version(version, length);
}

// Calls MPI's and changes a byte of the result at `place` where the rank has one.
#define BREAK(Name, parameters, arguments, has_result, place)                   \
  int PMPI_##Name parameters {                                                  \
    int rank = 0;                                                               \
    PMPI_Comm_rank(comm, &rank);                                                \
    int(*mine) parameters = (int(*) parameters)dlsym(RTLD_NEXT, "PMPI_" #Name); \
    const int code = mine arguments;                                            \
    if (has_result) ((char*)receive)[place] ^= 1;                               \
    return code;                                                                \
  }

BREAK(Gather,
      (const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type, int root,
       MPI_Comm comm),
      (send, send_count, send_type, receive, count, type, root, comm), rank == root, count)
BREAK(Scatter,
      (const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type, int root,
       MPI_Comm comm),
      (send, send_count, send_type, receive, count, type, root, comm), rank == 1, count - 1)
BREAK(Allgatherv,
      (const void* send, int send_count, MPI_Datatype send_type, void* receive, const int* counts, const int* places,
       MPI_Datatype type, MPI_Comm comm),
      (send, send_count, send_type, receive, counts, places, type, comm), rank == 1, places[1])
BREAK(Reduce_scatter, (const void* send, void* receive, const int* counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      (send, receive, counts, type, op, comm), rank == 1, 8 * counts[1] - 1)

// Rank 0 does not wait for the others, until the next time.
static MPI_Request pending = MPI_REQUEST_NULL;

int MPI_Barrier(MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Wait(&pending, MPI_STATUS_IGNORE);
  const int code = PMPI_Ibarrier(comm, &pending);
  return rank == 0 ? code : PMPI_Wait(&pending, MPI_STATUS_IGNORE);
}

int MPI_Finalize(void) {
  PMPI_Wait(&pending, MPI_STATUS_IGNORE);
  return PMPI_Finalize();
}
