// Sums whose bits depend on the order of the additions, and so on MPI's algorithm: a line for each message size, of the
// bytes and of what stands for all bits of the result.
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int count = 16; count <= 8192; count *= 512) {
    double* const values = malloc((size_t)count * sizeof *values);
    double* const sums = malloc((size_t)count * sizeof *sums);
    srand((unsigned)rank + 1);
    for (int i = 0; i < count; ++i) values[i] = rand() / 3.0;
    MPI_Allreduce(values, sums, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    uint64_t all = 0;
    for (int i = 0; i < count; ++i) {
      uint64_t bits;
      memcpy(&bits, &sums[i], sizeof bits);
      all = (all ^ bits) * 1099511628211u;
    }
    if (rank == 0) printf("%zu %" PRIx64 "\n", (size_t)count * sizeof *sums, all);
    free(values);
    free(sums);
  }
  MPI_Finalize();
  return 0;
}
