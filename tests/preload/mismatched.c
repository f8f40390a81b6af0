// Allgathers of which now and then one rank sends fewer elements than the others receive from it. MPI lets that pass;
// what the other ranks send is checked.
//   mismatched CALLS
#define _GNU_SOURCE
#include <mpi.h>
#include <stdlib.h>

#include "check.h"

enum { most = 5000, most_ranks = 4 };

static int rank, ranks;
static int send[most], receive[most * most_ranks];

static int value(int from, int call, int i) {
  return from * 1000 + call + i;
}

static int one_call(int with_counts, int count, int sent, int call, MPI_Comm comm) {
  int counts[most_ranks], places[most_ranks];
  for (int r = 0; r < ranks; ++r) {
    counts[r] = count;
    places[r] = r * count;
  }
  for (int i = 0; i < sent; ++i) send[i] = value(rank, call, i);
  memset(receive, 0xff, sizeof receive);
  if (with_counts) return COUNTED(MPI_Allgatherv, send, sent, MPI_INT, receive, counts, places, MPI_INT, comm);
  return COUNTED(MPI_Allgather, send, sent, MPI_INT, receive, count, MPI_INT, comm);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > most_ranks) MPI_Abort(MPI_COMM_WORLD, 2);
  const int calls = atoi(argv[1]);
  for (int with_counts = 0; with_counts < 2; ++with_counts)
    for (int call = 0; call < calls; ++call) {
      const int count = call % 2 == 0 ? 5 : most;
      const int wrong = call % 7 == 3 ? call % ranks : -1;
      CHECK(one_call(with_counts, count, rank == wrong ? count - 2 : count, call, MPI_COMM_WORLD) == MPI_SUCCESS);
      int differ = 0;
      for (int from = 0; from < ranks; ++from)
        for (int i = 0; i < count && from != wrong; ++i) differ += receive[from * count + i] != value(from, call, i);
      CHECK(differ == 0);
    }
  MPI_Finalize();
  return finish();
}
