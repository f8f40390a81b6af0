// Communicators that are freed while a set-up across nodes is due on them: they made broadcasts and reductions, and no
// call in which the ranks could meet. A callback of some makes an allreduce while they are freed. The last communicator
// has such calls.
//   freed_due COMMUNICATORS
#include <mpi.h>
#include <stdlib.h>

#include "check.h"

enum { count = 50, calls = 60 };

static int rank, ranks;

static void make_calls(MPI_Comm comm, int number) {
  for (int call = 0; call < calls; ++call) {
    const int root = (number + call) % ranks;
    double data[count], sums[count];
    for (int i = 0; i < count; ++i) data[i] = rank == root ? number + call + i : -1;
    COUNTED(MPI_Bcast, data, count, MPI_DOUBLE, root, comm);
    int wrong = 0;
    for (int i = 0; i < count; ++i) wrong += data[i] != number + call + i;
    COUNTED(MPI_Reduce, data, sums, count, MPI_DOUBLE, MPI_SUM, root, comm);
    for (int i = 0; i < count && rank == root; ++i) wrong += sums[i] != ranks * (double)(number + call + i);
    CHECK(wrong == 0);
  }
}

static int meet(MPI_Comm comm, int key, void* value, void* state) {
  int one = 1, all = 0;
  (void)key;
  (void)value;
  (void)state;
  MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm);
  CHECK(all == ranks);
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int communicators = atoi(argv[1]);
  int key;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, meet, &key, NULL);
  MPI_Comm comm;
  for (int number = 0; number <= communicators; ++number) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (number % 2 == 1) MPI_Comm_set_attr(comm, key, NULL);
    make_calls(comm, number);
    if (number == communicators) {
      for (int i = 0; i < 3; ++i) {
        COUNTED(MPI_Barrier, comm);
        make_calls(comm, number);
      }
    }
    MPI_Comm_free(&comm);
  }
  MPI_Comm_free_keyval(&key);
  MPI_Finalize();
  return finish();
}
