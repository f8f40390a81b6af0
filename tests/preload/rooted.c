// Broadcasts and reductions in a loop, of which all that MPI lets leave early do so in every second call: the others
// come once they know that these have left. Now and then the ranks meet.
//   rooted CALLS
#include <mpi.h>
#include <stdlib.h>

#include "check.h"

enum { count = 100, meeting_every = 16 };

static int rank, ranks;

static double value(int of, int call, int i) {
  return of + call + i;
}

// From those that have left, `root` or all but it, to those that have not come.
static void tell(int root, int from_root) {
  for (int other = 0; other < ranks; ++other) {
    if (other == root || (rank != root && rank != other)) continue;
    const int to = from_root ? other : root, from = from_root ? root : other;
    if (rank == from) CHECK(MPI_Send(NULL, 0, MPI_INT, to, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
    if (rank == to) CHECK(MPI_Recv(NULL, 0, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  }
}

static void one_bcast(int root, int call, int early) {
  double data[count];
  for (int i = 0; i < count; ++i) data[i] = rank == root ? value(root, call, i) : -1;
  if (early && rank != root) tell(root, 1);
  CHECK(COUNTED(MPI_Bcast, data, count, MPI_DOUBLE, root, MPI_COMM_WORLD) == MPI_SUCCESS);
  if (early && rank == root) tell(root, 1);
  int wrong = 0;
  for (int i = 0; i < count; ++i) wrong += data[i] != value(root, call, i);
  CHECK(wrong == 0);
}

static void one_reduce(int root, int call, int early) {
  double data[count], sums[count];
  for (int i = 0; i < count; ++i) data[i] = value(rank, call, i);
  if (early && rank == root) tell(root, 0);
  CHECK(COUNTED(MPI_Reduce, data, sums, count, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD) == MPI_SUCCESS);
  if (early && rank != root) tell(root, 0);
  int wrong = 0;
  for (int i = 0; i < count && rank == root; ++i)
    wrong += sums[i] != ranks * (ranks - 1) / 2 + (double)ranks * (call + i);
  CHECK(wrong == 0);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int calls = atoi(argv[1]);
  for (int call = 0; call < calls; ++call) {
    one_bcast(0, call, call % 2);
    one_reduce(0, call, call % 2);
    if (call % meeting_every == 0) CHECK(COUNTED(MPI_Barrier, MPI_COMM_WORLD) == MPI_SUCCESS);
  }
  MPI_Finalize();
  return finish();
}
