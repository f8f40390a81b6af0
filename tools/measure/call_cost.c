// What recording costs: MPI_X under papaya against MPI's own function, in turn in one process, for a call that does
// almost nothing (one rank, or MPI_COMM_SELF), so that the difference is papaya's. Medians of blocks.
//
//   mpirun -n 1 env PAPAYA_CALLSITES=0 papaya run call_cost
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tools/measure/native.h"

enum { blocks = 101, iterations = 20000 };

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static double median(double* values) {
  qsort(values, blocks, sizeof *values, ascending);
  return values[blocks / 2];
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int (*native_bcast)(void*, int, MPI_Datatype, int, MPI_Comm) =
      (int (*)(void*, int, MPI_Datatype, int, MPI_Comm))native_function("PMPI_Bcast");
  int (*native_allreduce)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm) =
      (int (*)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm))native_function("PMPI_Allreduce");
  static double native[2][blocks], recorded[2][blocks];
  double value = 1, sum = 0;
  for (int block = 0; block < blocks; ++block) {
    double t = now_ns();
    for (int i = 0; i < iterations; ++i) native_bcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_SELF);
    native[0][block] = (now_ns() - t) / iterations;
    t = now_ns();
    for (int i = 0; i < iterations; ++i) MPI_Bcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_SELF);
    recorded[0][block] = (now_ns() - t) / iterations;
    t = now_ns();
    for (int i = 0; i < iterations; ++i) native_allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
    native[1][block] = (now_ns() - t) / iterations;
    t = now_ns();
    for (int i = 0; i < iterations; ++i) MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
    recorded[1][block] = (now_ns() - t) / iterations;
  }
  const char* names[] = {"Bcast", "Allreduce"};
  for (int k = 0; k < 2; ++k) {
    const double n = median(native[k]), r = median(recorded[k]);
    printf("MPI_%-10s native %6.1f ns, recorded %6.1f ns, cost %6.1f ns\n", names[k], n, r, r - n);
  }
  MPI_Finalize();
  return 0;
}
