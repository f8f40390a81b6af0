// What MPI_Wait on a null request and MPI_Send to nobody cost under papaya, against MPI itself, in turn in one process.
// Medians.
//
//   mpirun -n 1 papaya run wait_cost                               nothing chosen: the trampolines lead past papaya
//   mpirun -n 1 env PAPAYA_IALLREDUCE=ring papaya run wait_cost    chosen, and nothing outstanding
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
  int (*native_wait)(MPI_Request*, MPI_Status*) = (int (*)(MPI_Request*, MPI_Status*))native_function("PMPI_Wait");
  int (*native_send)(const void*, int, MPI_Datatype, int, int, MPI_Comm) =
      (int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm))native_function("PMPI_Send");
  static double native[2][blocks], under[2][blocks];
  MPI_Request request = MPI_REQUEST_NULL;
  for (int block = 0; block < blocks; ++block) {
    double t = now_ns();
    for (int i = 0; i < iterations; ++i) native_wait(&request, MPI_STATUS_IGNORE);
    native[0][block] = (now_ns() - t) / iterations;
    t = now_ns();
    for (int i = 0; i < iterations; ++i) MPI_Wait(&request, MPI_STATUS_IGNORE);
    under[0][block] = (now_ns() - t) / iterations;
    t = now_ns();
    for (int i = 0; i < iterations; ++i) native_send(&i, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF);
    native[1][block] = (now_ns() - t) / iterations;
    t = now_ns();
    for (int i = 0; i < iterations; ++i) MPI_Send(&i, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF);
    under[1][block] = (now_ns() - t) / iterations;
  }
  const char* names[] = {"Wait", "Send"};
  for (int k = 0; k < 2; ++k) {
    const double n = median(native[k]), u = median(under[k]);
    printf("MPI_%-5s native %6.1f ns, under papaya %6.1f ns, cost %5.1f ns\n", names[k], n, u, u - n);
  }
  MPI_Finalize();
  return 0;
}
