// Collectives of all kinds that online selection follows, on several communicators, of several sizes, with ranks that
// come late and calls that fail on one rank; each result is checked.
//   adapt ROUNDS SEED
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

enum { communicators = 3, most = 6000, most_ranks = 8 };

static uint32_t state;
static uint32_t next(uint32_t below) {  // the same on all ranks
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % below;
}

static double send[most * most_ranks], receive[most * most_ranks];

static double value(int rank, int call, int i) {
  return rank * 3 + call % 1000 + i % 17;
}

static double sum_of(int ranks, int call, int i) {
  return 3.0 * ranks * (ranks - 1) / 2 + (double)ranks * (call % 1000 + i % 17);
}

// One of the ranks makes calls that MPI refuses, alone: the others wait for its next. Debian's MPICH does not look.
static void fail_alone(MPI_Comm comm) {
#if defined(OPEN_MPI)
  CHECK(MPI_Allreduce(send, receive, 1, MPI_DOUBLE, MPI_OP_NULL, comm) != MPI_SUCCESS);
  CHECK(MPI_Allreduce(send, receive, -1, MPI_DOUBLE, MPI_SUM, comm) != MPI_SUCCESS);
#else
  (void)comm;
#endif
}

static void one_call(MPI_Comm comm, int kind, int count, int call) {
  int rank, ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  const int root = call % ranks;
  int wrong = 0;
  for (int i = 0; i < count * ranks; ++i) send[i] = value(rank, call, i);
  memset(receive, 0xff, sizeof(double) * (size_t)(count * ranks));
  switch (kind) {
    case 0:
      CHECK(COUNTED(MPI_Allreduce, send, receive, count, MPI_DOUBLE, MPI_SUM, comm) == MPI_SUCCESS);
      for (int i = 0; i < count; ++i) wrong += receive[i] != sum_of(ranks, call, i);
      break;
    case 1:
      CHECK(COUNTED(MPI_Reduce, send, receive, count, MPI_DOUBLE, MPI_SUM, root, comm) == MPI_SUCCESS);
      for (int i = 0; i < count && rank == root; ++i) wrong += receive[i] != sum_of(ranks, call, i);
      break;
    case 2:
      CHECK(COUNTED(MPI_Bcast, send, count, MPI_DOUBLE, root, comm) == MPI_SUCCESS);
      for (int i = 0; i < count; ++i) wrong += send[i] != value(root, call, i);
      break;
    case 3:
      CHECK(COUNTED(MPI_Alltoall, send, count, MPI_DOUBLE, receive, count, MPI_DOUBLE, comm) == MPI_SUCCESS);
      for (int i = 0; i < count * ranks; ++i) wrong += receive[i] != value(i / count, call, rank * count + i % count);
      break;
    case 4:
      CHECK(COUNTED(MPI_Allgather, send, count, MPI_DOUBLE, receive, count, MPI_DOUBLE, comm) == MPI_SUCCESS);
      for (int i = 0; i < count * ranks; ++i) wrong += receive[i] != value(i / count, call, i % count);
      break;
    default:
      CHECK(COUNTED(MPI_Barrier, comm) == MPI_SUCCESS);
  }
  CHECK(wrong == 0);
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int rounds = atoi(argv[1]);
  state = (uint32_t)atoi(argv[2]);
  MPI_Comm comms[communicators] = {MPI_COMM_WORLD};
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[1]);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[2]);
  for (int c = 0; c < communicators; ++c) MPI_Comm_set_errhandler(comms[c], MPI_ERRORS_RETURN);
  static const int counts[] = {1, 7, 512, most};
  int call = 0;
  for (int round = 0; round < rounds; ++round) {
    MPI_Comm comm = comms[next(communicators)];
    const int kind = (int)next(6);
    const int count = counts[next(4)];
    const int repeats = 1 + (int)next(40);
    const int late = (int)next(4) == 0 ? (int)next((uint32_t)ranks) : -1;
    if (next(10) == 0 && (int)next((uint32_t)ranks) == rank) fail_alone(comm);
    for (int i = 0; i < repeats; ++i, ++call) {
      if (late == rank && i % 8 == 0) usleep(100);
      one_call(comm, kind, count, call);
    }
  }
  for (int c = 1; c < communicators; ++c) MPI_Comm_free(&comms[c]);
  MPI_Finalize();
  return finish();
}
