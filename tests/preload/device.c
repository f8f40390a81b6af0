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

// From one rank's device, or to it.
static void exchange(double* buffer, double* other, int sends, int call) {
  int counts[2][8], places[8];
  for (int peer = 0; peer < ranks; ++peer) {
    places[peer] = peer * 100;
    counts[0][peer] = (rank + 2 * peer + call) % 100;
    counts[1][peer] = (peer + 2 * rank + call) % 100;
  }
  double* const send = sends ? buffer : other;
  double* const receive = sends ? other : buffer;
  for (int i = 0; i < ranks * 100; ++i) send[i] = rank * 1000 + i;
  COUNTED(MPI_Alltoallv, send, counts[0], places, MPI_DOUBLE, receive, counts[1], places, MPI_DOUBLE, MPI_COMM_WORLD);
  for (int peer = 0; peer < ranks; ++peer)
    for (int i = 0; i < counts[1][peer]; ++i) CHECK(receive[places[peer] + i] == peer * 1000 + rank * 100 + i);
}

int main(int argc, char** argv) {
  static double host[5000], other[5000], device[5000];
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
    exchange(rank == i % ranks ? device : host, other, i % 2, i);
    exchange(host, other, i % 2, i);
  }
  const int code = finish();
  MPI_Finalize();
  return code;
}
