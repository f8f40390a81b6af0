// What an operation costs that needs a rank which waits in MPI_Barrier: MPI's own barrier and papaya's in turn, in one
// process.
//
//   mpirun -n 2 papaya run progress_cost [-n OPERATIONS] [-r ROUNDS] [-g GAP_US]
//
// Rank 1 waits; rank 0 does OPERATIONS (20000) of MPI_Ssend to receives that rank 1 has posted, or of MPI_Fetch_and_op
// and MPI_Win_flush on rank 1's window (MPI_Win_create), GAP_US (0) of sleep before each, and comes to the barrier
// then. Medians of ROUNDS (5), microseconds an operation.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tools/measure/native.h"

enum { kinds = 2, most_rounds = 101 };

static int operations = 20000, rounds = 5, gap_us = 0;
static int rank;
static MPI_Win window;
static MPI_Request* requests;
static int* received;

typedef int (*barrier)(MPI_Comm);

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void sleep_us(int us) {
  const struct timespec t = {us / 1000000, us % 1000000 * 1000};
  nanosleep(&t, NULL);
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static void wrong(const char* what) {
  fprintf(stderr, "progress_cost: wrong result of %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static double send(barrier wait, barrier native_barrier) {
  if (rank == 1)
    for (int i = 0; i < operations; ++i) MPI_Irecv(received + i, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, requests + i);
  native_barrier(MPI_COMM_WORLD);
  double us = 0;
  if (rank == 0) {
    sleep_us(1000);  // rank 1 is waiting by then
    for (int i = 0; i < operations; ++i) {
      if (gap_us > 0) sleep_us(gap_us);
      const double begin = now_us();
      MPI_Ssend(&i, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
      us += now_us() - begin;
    }
  }
  wait(MPI_COMM_WORLD);
  if (rank == 1) {
    for (int i = 0; i < operations; ++i) {
      MPI_Wait(requests + i, MPI_STATUS_IGNORE);
      if (received[i] != i) wrong("MPI_Ssend");
    }
  }
  return us / operations;
}

static double fetch(barrier wait, barrier native_barrier) {
  static long before = 0;
  native_barrier(MPI_COMM_WORLD);
  double us = 0;
  if (rank == 0) {
    const long one = 1;
    long old = 0;
    sleep_us(1000);
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
    for (int i = 0; i < operations; ++i) {
      if (gap_us > 0) sleep_us(gap_us);
      const double begin = now_us();
      MPI_Fetch_and_op(&one, &old, MPI_LONG, 1, 0, MPI_SUM, window);
      MPI_Win_flush(1, window);
      us += now_us() - begin;
      if (old != before++) wrong("MPI_Fetch_and_op");
    }
    MPI_Win_unlock(1, window);
  }
  wait(MPI_COMM_WORLD);
  return us / operations;
}

int main(int argc, char** argv) {
  for (int option; (option = getopt(argc, argv, "n:r:g:")) != -1;) {
    if (option == 'n') operations = atoi(optarg);
    if (option == 'r') rounds = atoi(optarg);
    if (option == 'g') gap_us = atoi(optarg);
  }
  if (operations < 1 || rounds < 1 || rounds > most_rounds || gap_us < 0) {
    fprintf(stderr, "usage: progress_cost [-n OPERATIONS] [-r ROUNDS, %d at most] [-g GAP_US]\n", most_rounds);
    return 2;
  }
  MPI_Init(&argc, &argv);
  int ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks < 2) {
    fprintf(stderr, "progress_cost: needs 2 ranks\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const barrier native_barrier = (barrier)native_function("PMPI_Barrier");
  requests = malloc((size_t)operations * sizeof *requests);
  received = malloc((size_t)operations * sizeof *received);
  static long memory;
  MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  for (int i = 0; i < 100; ++i) MPI_Barrier(MPI_COMM_WORLD);  // papaya has prepared itself by then
  static double us[kinds][2][most_rounds];
  for (int round = 0; round < rounds; ++round)
    for (int under = 0; under < 2; ++under) {
      const barrier wait = under ? MPI_Barrier : native_barrier;
      us[0][under][round] = send(wait, native_barrier);
      us[1][under][round] = fetch(wait, native_barrier);
    }
  const char* const names[kinds] = {"MPI_Ssend", "MPI_Fetch_and_op, flush"};
  for (int kind = 0; rank == 0 && kind < kinds; ++kind) {
    for (int under = 0; under < 2; ++under) qsort(us[kind][under], (size_t)rounds, sizeof(double), ascending);
    printf("%-24s beside a rank in MPI's barrier %8.2f us, in papaya's %8.2f us\n", names[kind],
           us[kind][0][rounds / 2], us[kind][1][rounds / 2]);
  }
  MPI_Win_free(&window);
  free(received);
  free(requests);
  MPI_Finalize();
  return 0;
}
