// Rank 1 is late at the first calls, of which the record of single calls keeps none: so many follow.
#include <mpi.h>
#include <time.h>

#include "check.h"

enum { late = 160, more = 40000 };

__attribute__((noinline)) static int assemble(int rank, MPI_Comm comm) {
  if (rank == 1) nanosleep(&(struct timespec){0, 1000000}, NULL);
  int sum = 0;
  COUNTED(MPI_Allreduce, &rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum + 1;  // keeps this a call and not a jump
}

__attribute__((noinline)) static int solve(int rank, MPI_Comm comm) {
  int sum = 0;
  COUNTED(MPI_Allreduce, &rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum + 1;
}

// Rank 0 does not wait for the others, and runs ahead of them.
__attribute__((noinline)) static void tell(int rank) {
  if (rank == 1) nanosleep(&(struct timespec){0, 1000000}, NULL);
  int value = 7;
  COUNTED(MPI_Bcast, &value, 1, MPI_INT, 0, MPI_COMM_WORLD);
  CHECK(value == 7);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  int ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  const int expected = ranks * (ranks - 1) / 2 + 1;
  for (int i = 0; i < late; ++i) CHECK(assemble(rank, MPI_COMM_WORLD) == expected);
  for (int i = 0; i < 64; ++i) tell(rank);
  for (int i = 0; i < more; ++i) CHECK(solve(rank, i % 2 == 0 ? MPI_COMM_WORLD : other) == expected);
  MPI_Comm_free(&other);
  const int code = finish();
  MPI_Finalize();
  return code;
}
