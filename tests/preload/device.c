// A buffer on a device on one rank only, from the middle of the run on: libcuda is loaded late, as by an import in Python.
// The buffers are host memory in truth, so that MPI can reduce them: what counts is that every rank takes the same way.
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <unistd.h>

#include "check.h"

static int rank, ranks;

static void reduce(double* buffer, int count) {
  for (int i = 0; i < count; ++i) buffer[i] = rank + i;
  COUNTED(MPI_Allreduce, MPI_IN_PLACE, buffer, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) CHECK(buffer[i] == ranks * (ranks - 1) / 2.0 + ranks * i);
}

int main(int argc, char** argv) {
  static double host[5000], device[5000];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < 10; ++i) reduce(host, 1 + i * 500);
  void* cuda = dlopen(argv[1], RTLD_NOW);
  CHECK(cuda != NULL);
  if (cuda != NULL) ((void (*)(void*, uint64_t))(uintptr_t)dlsym(cuda, "fake_register"))(device, sizeof device);
  usleep(50000);  // a real one takes longer to start
  for (int i = 0; i < 10; ++i) {
    reduce(rank == i % ranks ? device : host, 1 + i * 500);
    reduce(host, 3);
    reduce(device, 4000);
  }
  const int code = finish();
  MPI_Finalize();
  return code;
}
