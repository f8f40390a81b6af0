// usage: arrivals FOLDER SECONDS
// Barriers at random times. Each rank notes in FOLDER/RANK when it entered each, in ns of CLOCK_MONOTONIC as the kernel
// tells it, which is the same clock on all nodes of the box.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void) {
  struct timespec time;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char path[4096];
  snprintf(path, sizeof path, "%s/%d", argv[1], rank);
  FILE* const file = fopen(path, "w");
  if (file == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  srand((unsigned)rank);
  const long long end = now_ns() + (long long)(atof(argv[2]) * 1e9);
  for (int more = 1; more;) {
    usleep((useconds_t)(rand() % 4000));
    fprintf(file, "%lld\n", now_ns());
    MPI_Barrier(MPI_COMM_WORLD);
    more = now_ns() < end;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  fclose(file);
  MPI_Finalize();
  return 0;
}
