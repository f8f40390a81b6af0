// Persistent collectives that ranks start in different orders, one by one and several at once, beside persistent
// messages and partitioned ones; requests are freed while others are alive, and their handles are given out again.
#include "check.h"
#include "mpi4.h"

static int rank, ranks;

#if HAS_PERSISTENT_COLLECTIVES
static MPI_Status statuses[4];  // not ignored: MPICH declares the constant so that GCC warns
#endif

#if HAS_MPI_4
enum { partitions = 4 };

static void partitioned(void) {
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  int out[partitions], in[partitions];
  MPI_Request pair[2];
  MPI_Psend_init(out, partitions, 1, MPI_INT, right, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &pair[0]);
  MPI_Precv_init(in, partitions, 1, MPI_INT, left, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &pair[1]);
  for (int round = 0; round < 2; ++round) {
    MPI_Startall(2, pair);
    for (int i = 0; i < partitions; ++i) out[i] = 100 * rank + 10 * round + i;
    int last = partitions - 1;
    MPI_Pready(0, pair[0]);
    MPI_Pready_range(1, 2, pair[0]);
    MPI_Pready_list(1, &last, pair[0]);
    int there = 0;
    while (!there) MPI_Parrived(pair[1], 2, &there);
    MPI_Waitall(2, pair, statuses);
    for (int i = 0; i < partitions; ++i) CHECK(in[i] == 100 * left + 10 * round + i);
  }
  MPI_Request_free(&pair[0]);
  MPI_Request_free(&pair[1]);
}
#endif

#if HAS_PERSISTENT_COLLECTIVES
static void collectives(void) {
  int one = rank, sum = -1, most = rank, largest = -1, in = rank, message = -1;
  MPI_Request all[4];
  MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &all[0]);
#if HAS_LARGE_COUNTS
  MPI_Allreduce_init_c(&most, &largest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, &all[1]);
#else
  MPI_Allreduce_init(&most, &largest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, &all[1]);
#endif
  MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &all[2]);
  const int right = (rank + 1) % ranks;
  MPI_Send_init(&in, 1, MPI_INT, right, 3, MPI_COMM_WORLD, &all[3]);
  for (int round = 0; round < 5; ++round) {
    // Two orders of the same operations.
    const int first = rank % 2;
    MPI_Start(&all[first]);
    MPI_Start(&all[1 - first]);
    MPI_Waitall(2, all, statuses);
    CHECK(sum == ranks * (ranks - 1) / 2 && largest == ranks - 1);
    sum = largest = -1;
    MPI_Startall(4, all);
    MPI_Recv(&message, 1, MPI_INT, (rank + ranks - 1) % ranks, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(4, all, statuses);
    CHECK(sum == ranks * (ranks - 1) / 2 && largest == ranks - 1);
    sum = largest = -1;
  }
  MPI_Request_free(&all[0]);
  // The handle that is free may be a message's now, which is started and is no collective.
  MPI_Send_init(&in, 1, MPI_INT, right, 4, MPI_COMM_WORLD, &all[0]);
  MPI_Start(&all[0]);
  MPI_Recv(&message, 1, MPI_INT, (rank + ranks - 1) % ranks, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&all[0], MPI_STATUS_IGNORE);
  for (int i = 0; i < 4; ++i) MPI_Request_free(&all[i]);
  // An operation outlives its communicator's handle.
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_set_name(copy, "copy");
  MPI_Request left;
  MPI_Bcast_init(&in, 1, MPI_INT, 1, copy, MPI_INFO_NULL, &left);
  MPI_Start(&left);
  MPI_Wait(&left, MPI_STATUS_IGNORE);
  CHECK(in == 1);
  MPI_Request_free(&left);
  MPI_Comm_free(&copy);
}
#endif

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
#if HAS_PERSISTENT_COLLECTIVES
  collectives();
#endif
#if HAS_MPI_4
  partitioned();
#endif
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return finish();
}
