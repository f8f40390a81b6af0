// Stands in for the library in a test of the benchmark's own checks: its "broken" algorithms give wrong results.
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
