// Collectives that ranks use in different orders: one is moved on by waits for another, and MPI_Finalize frees what
// threads have created in any order, also where ranks have made different numbers of calls. Two ranks or more.
#include <mpi.h>
#include <pthread.h>
#include <unistd.h>

#include "check.h"
#include "papaya.h"

enum { count = 1000 };
static double mine[count], result[2][count];

// Of one in turn, the call of `first` is under way until that of `second` is done; all others need it before.
static void interleave(papaya_weak first, papaya_weak second) {
  for (int call = 0; call < 30; ++call) {
    int flag = 0;
    if (rank == call % ranks) {
      CHECK(papaya_weak_start(first, mine, result[0]) == MPI_SUCCESS);
      if (call % 4 < 2) {
        CHECK(papaya_weak_call(second, mine, result[1], NULL) == MPI_SUCCESS);
      } else {
        CHECK(papaya_weak_start(second, mine, result[1]) == MPI_SUCCESS);
        while (flag == 0) CHECK(papaya_weak_test(second, &flag, NULL) == MPI_SUCCESS);
      }
      CHECK(papaya_weak_wait(first, -1, &flag, NULL) == MPI_SUCCESS && flag == 1);
    } else {
      usleep(500);
      CHECK(papaya_weak_call(first, mine, result[0], NULL) == MPI_SUCCESS);
      CHECK(papaya_weak_call(second, mine, result[1], NULL) == MPI_SUCCESS);
    }
    for (int i = 0; i < count; ++i) CHECK(result[0][i] == ranks * mine[i] && result[1][i] == ranks * mine[i]);
  }
}

static papaya_weak create(MPI_Comm comm, const char* algorithm) {
  papaya_weak handle;
  CHECK(papaya_ssp_allreduce_create(comm, count, MPI_DOUBLE, MPI_SUM, 0, algorithm, &handle) == MPI_SUCCESS);
  return handle;
}

static MPI_Comm comms[2];
static void* create_in_thread(void* which) {
  const int number = (int)((MPI_Comm*)which - comms);
  if (number == rank % 2) usleep(100000);
  create(comms[number], NULL);
  return NULL;
}

int main(int argc, char** argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < count; ++i) mine[i] = i;
  papaya_weak ring = create(MPI_COMM_WORLD, "ssp_ring"), cube = create(MPI_COMM_WORLD, "ssp_hypercube");
  papaya_weak other = create(MPI_COMM_WORLD, "ssp_ring");
  interleave(ring, cube);
  interleave(cube, ring);
  interleave(ring, other);
  CHECK(papaya_weak_free(&other) == MPI_SUCCESS);

  // Left to MPI_Finalize: one whose call is under way on all ranks, and on one of them only; what threads created; and,
  // by all but one rank, what threads of papaya's call MPI for.
  CHECK(papaya_weak_start(cube, mine, result[0]) == MPI_SUCCESS);
  if (rank == 0) CHECK(papaya_weak_start(ring, mine, result[1]) == MPI_SUCCESS);
  if (level == MPI_THREAD_MULTIPLE) {
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, create_in_thread, &comms[i]);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  }
  for (int i = 0; i < 4; ++i) {
    papaya_weak solo;
    CHECK(papaya_partial_allreduce_create(MPI_COMM_WORLD, count, MPI_DOUBLE, MPI_SUM, NULL, &solo) == MPI_SUCCESS);
    CHECK(papaya_weak_call(solo, mine, result[1], NULL) == MPI_SUCCESS);
  }
  papaya_weak sharded;
  CHECK(papaya_ssp_allreduce_create(MPI_COMM_WORLD, count, MPI_DOUBLE, MPI_SUM, 2, "ssp_sharded:thread=1", &sharded) ==
        MPI_SUCCESS);
  CHECK(papaya_weak_start(sharded, mine, result[1]) == MPI_SUCCESS);
  if (rank != 0) usleep(100000);
  return end();
}
