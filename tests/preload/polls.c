// Rank 0 polls in quick succession for what rank 1 sends 20 ms later, by two functions in turn, ROUNDS times. Prints
// how often it called each, all rounds together.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
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
  if (rank == 0) printf("%d %d\n", tests, probes);
  MPI_Finalize();
  return 0;
}
