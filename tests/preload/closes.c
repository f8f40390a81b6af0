// A program that closes the descriptors it does not know, here those of folders and of files called *.pap,
// and opens a file of its own, which may get one of their numbers.
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int descriptor = 3; descriptor < 1024; ++descriptor) {
    char link[64], path[4096] = "";
    struct stat there;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) continue;
    const int is_record = length > 4 && strcmp(path + length - 4, ".pap") == 0;
    if (is_record || (fstat(descriptor, &there) == 0 && S_ISDIR(there.st_mode))) close(descriptor);
  }
  char name[32];
  snprintf(name, sizeof name, "own.%d", rank);
  const int own = open(name, O_CREAT | O_TRUNC | O_RDWR, 0644);
  CHECK(own >= 0 && write(own, "before\n", 7) == 7);
  for (int i = 0; i < 50; ++i) {
    int sum = 1;
    CHECK(COUNTED(MPI_Allreduce, MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(sum == ranks);
  }
  MPI_Finalize();
  char text[32] = "";
  CHECK(write(own, "after\n", 6) == 6);
  CHECK(pread(own, text, sizeof text, 0) == 13 && strcmp(text, "before\nafter\n") == 0);
  return finish();
}
