// Rank 3 sleeps before every third MPI_Allreduce, in late_work(). The runner knows which line calls.
#include <mpi.h>
#include <time.h>

#include "check.h"

__attribute__((noinline)) static int late_work(int rank, int round) {
  if (rank == 3 && round % 3 == 0) nanosleep(&(struct timespec){0, 15000000}, NULL);
  int sum = 0;
  COUNTED(MPI_Allreduce, &round, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);  // line of late_work
  return sum + 1;                                                             // keeps this a call and not a jump
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  int ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int round = 0; round < 60; ++round) CHECK(late_work(rank, round) == round * ranks + 1);
  const int code = finish();
  MPI_Finalize();
  return code;
}
