// As many sums of an int, in which no bit depends on who serves, as of 8 doubles, in which it may: CALLS.
#include <mpi.h>
#include <stdlib.h>

#include "check.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < atoi(argv[1]); ++i) {
    const int one = 1;
    int count = 0;
    COUNTED(MPI_Allreduce, &one, &count, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(count == ranks);
    double sums[8], own[8];
    for (int j = 0; j < 8; ++j) own[j] = rank + j;
    COUNTED(MPI_Allreduce, own, sums, 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sums[7] == ranks * (ranks - 1) / 2 + 7 * ranks);
  }
  const int code = finish();
  MPI_Finalize();
  return code;
}
