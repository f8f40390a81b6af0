// Loops of collectives on a communicator of all ranks and on one of some, after a while without any: what algorithms
// across nodes need is made ready in the middle. Rank 0 leaves its bcasts early, so that it is ahead of the others. The
// environment stays as it is: other threads may read it.
//   wire_later SECONDS CALLS [multiple]
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

enum { most_ranks = 8, length = 64 };

static int changes_of_environment;

int setenv(const char* name, const char* value, int overwrite) {
  ++changes_of_environment;
  return ((int (*)(const char*, const char*, int))dlsym(RTLD_NEXT, "setenv"))(name, value, overwrite);
}

int unsetenv(const char* name) {
  ++changes_of_environment;
  return ((int (*)(const char*))dlsym(RTLD_NEXT, "unsetenv"))(name);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  int level, rank, ranks;
  MPI_Init_thread(&argc, &argv, argc > 3 ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int changes_by_init = changes_of_environment;
  MPI_Comm all, some;
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &some);
  usleep((useconds_t)(atof(argv[1]) * 1e6));
  int wrong = 0;
  for (int call = 0; call < atoi(argv[2]); ++call) {
    int data[length], gathered[length * most_ranks];
    for (int i = 0; i < length; ++i) data[i] = rank == 0 ? call + i : -1;
    wrong += COUNTED(MPI_Bcast, data, length, MPI_INT, 0, all) != MPI_SUCCESS;
    for (int i = 0; i < length; ++i) wrong += data[i] != call + i;
    // The others are late for what rank 0 does next.
    if (rank != 0 && call % 64 == 0) usleep(200);
    if (rank != 0) {
      data[0] = call;
      wrong += COUNTED(MPI_Bcast, data, 1, MPI_INT, 0, some) != MPI_SUCCESS;
      wrong += data[0] != call;
    }
    for (int i = 0; i < length; ++i) data[i] = rank * length + i + call;
    wrong += COUNTED(MPI_Allgather, data, length, MPI_INT, gathered, length, MPI_INT, all) != MPI_SUCCESS;
    for (int i = 0; i < length * ranks; ++i) wrong += gathered[i] != i + call;
    const double own = 0.1 * rank;
    double sum = 0;
    wrong += COUNTED(MPI_Allreduce, &own, &sum, 1, MPI_DOUBLE, MPI_SUM, all) != MPI_SUCCESS;
    wrong += sum < 0.05 * ranks * (ranks - 1) - 1e-9 || sum > 0.05 * ranks * (ranks - 1) + 1e-9;
    wrong += COUNTED(MPI_Barrier, MPI_COMM_WORLD) != MPI_SUCCESS;
  }
  CHECK(wrong == 0);
  CHECK(changes_of_environment == changes_by_init);
  MPI_Comm_free(&some);
  MPI_Comm_free(&all);
  const int code = finish();
  MPI_Finalize();
  return code;
}
