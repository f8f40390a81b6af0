// Allreduces of one size on MPI_COMM_WORLD, for trials of that size alone; each result is checked.
//   tried NUMBERS CALLS
#include <mpi.h>
#include <stdlib.h>

#include "check.h"

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int count = atoi(argv[1]), calls = atoi(argv[2]);
  int* const mine = calloc((size_t)count, sizeof(int));
  int* const sums = calloc((size_t)count, sizeof(int));
  for (int call = 0; call < calls; ++call) {
    mine[0] = mine[count - 1] = rank + call;
    COUNTED(MPI_Allreduce, mine, sums, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sums[0] == ranks * call + ranks * (ranks - 1) / 2 && sums[count - 1] == sums[0]);
  }
  free(mine);
  free(sums);
  MPI_Finalize();
  return finish();
}
