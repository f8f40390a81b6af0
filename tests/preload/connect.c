// Two groups of MPI_COMM_WORLD meet by MPI_Open_port, MPI_Comm_accept and MPI_Comm_connect, the second of them late,
// and work with each other over the inter-communicator and merged.
#include <mpi.h>
#include <unistd.h>

#include "check.h"

static void allreduce(MPI_Comm comm) {
  int one = 1, sum = 0, ranks, is_inter;
  MPI_Comm_test_inter(comm, &is_inter);
  if (is_inter)
    MPI_Comm_remote_size(comm, &ranks);
  else
    MPI_Comm_size(comm, &ranks);
  for (int i = 0; i < 50; ++i) {
    CHECK(COUNTED(MPI_Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    CHECK(sum == ranks);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm half, other, merged;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  if (rank == 0) CHECK(MPI_Open_port(MPI_INFO_NULL, port) == MPI_SUCCESS);
  COUNTED(MPI_Bcast, port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (rank % 2 == 0) {
    CHECK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &other) == MPI_SUCCESS);
  } else {
    usleep(200 * 1000);
    CHECK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &other) == MPI_SUCCESS);
  }
  allreduce(half);
  allreduce(other);
  MPI_Intercomm_merge(other, rank % 2, &merged);
  allreduce(merged);
  allreduce(MPI_COMM_WORLD);
  MPI_Comm_free(&merged);
  MPI_Comm_disconnect(&other);
  MPI_Comm_free(&half);
  if (rank == 0) MPI_Close_port(port);
  const int code = finish();
  MPI_Finalize();
  return code;
}
