// Starts two more processes with MPI_Comm_spawn and works with them, over the inter-communicator and merged.
#include <mpi.h>
#include <stdlib.h>

#include "check.h"

static void allreduce(MPI_Comm comm) {
  int one = 1, sum = 0, ranks, remote = 0, is_inter;
  MPI_Comm_test_inter(comm, &is_inter);
  MPI_Comm_size(comm, &ranks);
  if (is_inter) MPI_Comm_remote_size(comm, &remote);
  for (int i = 0; i < 50; ++i) {
    CHECK(COUNTED(MPI_Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    CHECK(sum == (is_inter ? remote : ranks));
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm parent, other, merged;
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL) {
    allreduce(MPI_COMM_WORLD);
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
  } else {
    other = parent;
  }
  allreduce(other);
  MPI_Intercomm_merge(other, parent != MPI_COMM_NULL, &merged);
  int ranks;
  MPI_Comm_size(merged, &ranks);
  allreduce(merged);
  if (parent != MPI_COMM_NULL) allreduce(MPI_COMM_WORLD);
  MPI_Comm_free(&merged);
  const int code = finish();
  MPI_Comm_disconnect(&other);
  MPI_Finalize();
  return code;
}
