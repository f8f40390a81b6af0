// More calls than a rank's ring holds: CALLS of MPI_Barrier on MPI_COMM_SELF, PAUSE us after every 4096th. Then 3
// MPI_Allreduce on MPI_COMM_WORLD. With "long", and MPI_THREAD_MULTIPLE, rank 0's second thread is inside MPI_Bcast on
// a communicator of its own all the while. With "kill" rank 0 ends by SIGKILL instead of the last MPI_Allreduce.
//   many CALLS PAUSE [long|kill]
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static MPI_Comm own;

static void* broadcast(void* value) {
  CHECK(MPI_Bcast(value, 1, MPI_INT, 1, own) == MPI_SUCCESS);
  return NULL;
}

int main(int argc, char** argv) {
  const long calls = argc > 1 ? atol(argv[1]) : 100;
  const long pause = argc > 2 ? atol(argv[2]) : 0;
  const char* what = argc > 3 ? argv[3] : "";
  const int is_long = strcmp(what, "long") == 0;
  int provided, rank;
  MPI_Init_thread(&argc, &argv, is_long ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  if (is_long && provided != MPI_THREAD_MULTIPLE) {
    printf("no MPI_THREAD_MULTIPLE here\n");
    MPI_Finalize();
    return 77;
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &own);

  int value = rank;
  pthread_t thread;
  if (is_long) count_call("MPI_Bcast");
  if (is_long && rank == 0) CHECK(pthread_create(&thread, NULL, broadcast, &value) == 0);
  if (rank == 0)
    for (long i = 0; i < calls; ++i) {
      if (i % 4096 == 0 && pause > 0) usleep((useconds_t)pause);
      CHECK(COUNTED(MPI_Barrier, MPI_COMM_SELF) == MPI_SUCCESS);
    }
  if (is_long) {
    // Rank 1 comes to the broadcast when rank 0 has made its calls.
    int done = 1;
    if (rank == 0) MPI_Send(&done, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(&done, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0)
      pthread_join(thread, NULL);
    else
      broadcast(&value);
    CHECK(value == 1);
  }
  for (int i = 0; i < 3; ++i) {
    int sum = 1;
    if (strcmp(what, "kill") == 0 && rank == 0 && i == 2) raise(SIGKILL);
    CHECK(COUNTED(MPI_Allreduce, MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
  }
  const int code = finish();
  MPI_Comm_free(&own);
  MPI_Finalize();
  return code;
}
