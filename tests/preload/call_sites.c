// Collectives from places with names: outer() calls inner(), which calls MPI_Allreduce; elsewhere() calls MPI_Bcast,
// its rank 1 late. The runner knows which lines.
#include <mpi.h>
#include <time.h>

#include "check.h"

static int rank;

__attribute__((noinline)) static int inner(int round) {
  int sum = 0;
  COUNTED(MPI_Allreduce, &round, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);  // line of inner
  return sum + 1;                                                             // keeps this a call and not a jump
}

__attribute__((noinline)) static int outer(int round) {
  const int sum = inner(round);  // line of outer
  return sum - 1;
}

__attribute__((noinline)) static int elsewhere(int round) {
  if (rank == 1) nanosleep(&(struct timespec){0, 3000000}, NULL);
  int value = round;
  COUNTED(MPI_Bcast, &value, 1, MPI_INT, 1, MPI_COMM_WORLD);  // line of elsewhere
  return value + 1;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int round = 0; round < 20; ++round) {
    CHECK(outer(round) == round * ranks);
    CHECK(elsewhere(round) == round + 1);
  }
  const int code = finish();
  MPI_Finalize();
  return code;
}
