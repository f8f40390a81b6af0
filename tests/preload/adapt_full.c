// The root of a broadcast runs ahead of the others while the memory of their node is lent to communicators of theirs
// alone, which they free before they follow it: the algorithms find no memory on the root, and some on the others.
//   adapt_full ROUNDS
#include <mpi.h>
#include <stdlib.h>

#include "check.h"

enum { calls = 4, most_others = 100 };

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int rounds = argc > 1 ? atoi(argv[1]) : 0;
  MPI_Comm others, comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_split(MPI_COMM_WORLD, rank != 0, rank, &others);
  MPI_Comm lent[most_others];
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < most_others && rank != 0; ++i) {
      MPI_Comm_dup(others, &lent[i]);
      int one = 1, all = 0;
      for (int call = 0; call < 2; ++call) COUNTED(MPI_Allreduce, &one, &all, 1, MPI_INT, MPI_SUM, lent[i]);
      CHECK(all == ranks - 1);
    }
    COUNTED(MPI_Barrier, comm);
    if (rank != 0) MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < most_others && rank != 0; ++i) MPI_Comm_free(&lent[i]);
    for (int call = 0; call < calls; ++call) {
      int value = rank == 0 ? round * calls + call : -1;
      COUNTED(MPI_Bcast, &value, 1, MPI_INT, 0, comm);
      CHECK(value == round * calls + call);
    }
    for (int other = 1; other < ranks && rank == 0; ++other) MPI_Send(NULL, 0, MPI_INT, other, 0, MPI_COMM_WORLD);
  }
  MPI_Comm_free(&others);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return finish();
}
