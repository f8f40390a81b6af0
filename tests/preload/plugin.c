// The MPI half of plugin_host: the only object that is linked with MPI.
#include <mpi.h>
#include <stdlib.h>

#include "check.h"

__attribute__((visibility("default"))) int run_plugin(void);

int run_plugin(void) {
  MPI_Init(NULL, NULL);
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
