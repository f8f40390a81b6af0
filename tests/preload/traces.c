// What a library leaves in a process that MPI_Init has brought it into: prints the signals with handlers, how
// many variables of UCX's there are, and whether it is loaded, as seen by rank 0.
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

extern char** environ;

static void print_line_of(const char* path, const char* beginning) {
  FILE* const file = fopen(path, "r");
  char line[4096];
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, beginning, strlen(beginning)) == 0) printf("%s", line);
  if (file != NULL) fclose(file);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CHECK(COUNTED(MPI_Allreduce, &rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(sum == ranks * (ranks - 1) / 2);
  if (rank == 0) {
    print_line_of("/proc/self/status", "SigCgt");
    print_line_of("/proc/self/status", "SigIgn");
    int variables = 0, loaded = 0;
    for (char** entry = environ; *entry != NULL; ++entry) variables += strncmp(*entry, "UCX_", 4) == 0;
    FILE* const maps = fopen("/proc/self/maps", "r");
    char line[4096];
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) loaded |= strstr(line, "libpapaya-ucx") != NULL;
    if (maps != NULL) fclose(maps);
    printf("variables %d\nucx %d\n", variables, loaded);
    fflush(stdout);
  }
  const int code = finish();
  MPI_Finalize();
  return code;
}
