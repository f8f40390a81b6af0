// The pattern in which ranks arrive at MPI_Allreduce changes: rank 1 is late, then one or another, by lot. The one who
// is late sleeps. Each lasts until papaya has what serves such calls by the algorithm that is named for it, or for a
// few seconds: FIRST SECOND.
#include <mpi.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "include/papaya.h"

enum { most_calls = 10000, stop = 1 << 20 };

static unsigned lot = 1;

static int draw(int ranks) {
  lot = lot * 1103515245u + 12345u;
  return (int)(lot / 65536u % (unsigned)ranks);
}

// By rank 0's answer.
static int is_served_by(const char* algorithm) {
  char text[64];
  return papaya_get_algorithm("allreduce", MPI_COMM_WORLD, sizeof(int), text, sizeof text) == 0 &&
         strncmp(text, algorithm, strlen(algorithm)) == 0;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int phase = 0; phase < 2; ++phase) {
    int call = 0;
    for (int sum = 0; call < most_calls && sum < stop; ++call) {
      const int late = phase == 0 ? 1 : draw(ranks);
      if (rank == late) nanosleep(&(struct timespec){0, 300000}, NULL);
      const int is_end = rank == 0 && call % 16 == 15 && is_served_by(argv[1 + phase]);
      const int mine = is_end ? stop : rank + 1;
      COUNTED(MPI_Allreduce, &mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      CHECK(sum == ranks * (ranks + 1) / 2 || sum == stop + ranks * (ranks + 1) / 2 - 1);
    }
    // Some that it serves.
    for (int i = 0; i < 100; ++i) COUNTED(MPI_Allreduce, MPI_IN_PLACE, &call, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  }
  const int code = finish();
  MPI_Finalize();
  return code;
}
