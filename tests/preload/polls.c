// Rank 0 polls in quick succession for what rank 1 sends 20 ms later, by two functions in turn, ROUNDS times. Prints
// how often it called each, all rounds together and after them: there, once more while recording is off, which does not
// count, and from threads that end with a poll. MPI_Finalize comes from another thread, which is to find them all.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int poll(int times) {
  for (int i = 0; i < times; ++i) {
    int other;
    MPI_Iprobe(MPI_ANY_SOURCE, 2, MPI_COMM_SELF, &other, MPI_STATUS_IGNORE);
  }
  return times;
}

static void* poll_in_thread(void* times) {
  poll(*(int*)times);
  return times;
}

static void* finalize(void* nothing) {
  MPI_Finalize();
  return nothing;
}

int main(int count, char** arguments) {
  int level;
  MPI_Init_thread(&count, &arguments, MPI_THREAD_SERIALIZED, &level);
  const int rounds = count > 1 ? atoi(arguments[1]) : 5;
  int rank, tests = 0, probes = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int round = 0; round < rounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    int sent = round, received = -1;
    if (rank == 1) {
      usleep(20000);
      MPI_Send(&sent, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    } else if (rank == 0) {
      MPI_Request request;
      MPI_Irecv(&received, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &request);
      for (int has_come = 0, other; !has_come;) {
        MPI_Test(&request, &has_come, MPI_STATUS_IGNORE);
        MPI_Iprobe(1, 2, MPI_COMM_WORLD, &other, MPI_STATUS_IGNORE);
        ++tests;
        ++probes;
      }
      if (received != round) return 1;
    }
  }
  if (rank == 0) {
    probes += poll(10);
    MPI_Pcontrol(0);
    poll(30);
    MPI_Pcontrol(1);
    probes += poll(5);
  }
  pthread_t thread;
  for (int times = 1; rank == 0 && times < 30; times += 7) {
    if (pthread_create(&thread, NULL, poll_in_thread, &times) != 0) return 1;
    pthread_join(thread, NULL);
    probes += times;
  }
  if (rank == 0) printf("%d %d\n", tests, probes);
  if (pthread_create(&thread, NULL, finalize, NULL) != 0) return 1;
  pthread_join(thread, NULL);
  return 0;
}
