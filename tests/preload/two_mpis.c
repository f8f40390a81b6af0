// A program of one MPI into which a second one gets loaded, as happens with plugins built for another MPI.
//   two_mpis libmpich.so.12
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>

#include "check.h"

int main(int argc, char** argv) {
  if (argc < 2 || dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) == NULL) {
    fprintf(stderr, "skipped: cannot load the second MPI\n");
    return 77;
  }
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < 100; ++i) {
    int sum = rank + i;
    CHECK(COUNTED(MPI_Allreduce, MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(sum == ranks * i + ranks * (ranks - 1) / 2);
  }
  const int code = finish();
  MPI_Finalize();
  return code;
}
