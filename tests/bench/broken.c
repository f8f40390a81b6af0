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
