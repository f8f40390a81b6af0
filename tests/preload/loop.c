// A loop of MPI_Allreduce that may end badly: after ITERATIONS / 2 iterations rank 1 does what ENDING says.
//   loop ITERATIONS [none|abort|exit|kill|segv|stop|slows]
// ITERATIONS 0: until killed. Each rank prints "pid N" first. `stop` sends itself SIGSTOP: a rank that hangs.
// slows: all ranks sleep 2 ms before each call, and rank 1 8 ms once it has got SIGUSR2.
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static volatile sig_atomic_t is_slow;

static void slow_down(int number) {
  (void)number;
  is_slow = 1;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long iterations = argc > 1 ? atol(argv[1]) : 100;
  const char* ending = argc > 2 ? argv[2] : "none";
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int slows = strcmp(ending, "slows") == 0;
  if (slows) signal(SIGUSR2, slow_down);
  printf("pid %ld\n", (long)getpid());
  fflush(stdout);

  for (long i = 0; iterations == 0 || i < iterations; ++i) {
    if (rank == 1 && 2 * i == iterations && iterations > 0) {
      if (strcmp(ending, "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 7);
      if (strcmp(ending, "exit") == 0) _exit(3);
      if (strcmp(ending, "kill") == 0) raise(SIGKILL);
      if (strcmp(ending, "segv") == 0) raise(SIGSEGV);
      if (strcmp(ending, "stop") == 0) raise(SIGSTOP);
    }
    // The other ranks are inside MPI_Allreduce when it happens, most of the time.
    if (rank == 1 || slows) {
      const struct timespec pause = {0, !slows ? 1000000 : rank == 1 && is_slow ? 8000000 : 2000000};
      nanosleep(&pause, NULL);
    }
    double values[4] = {(double)rank, (double)i, 1, 0.5};
    CHECK(COUNTED(MPI_Allreduce, MPI_IN_PLACE, values, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(values[0] == 0.5 * ranks * (ranks - 1) && values[1] == (double)i * ranks && values[2] == ranks);
  }
  const int code = finish();
  MPI_Finalize();
  return code;
}
