// Fills /dev/shm after MPI_Init, then goes on. Meant for a private /dev/shm of some megabytes (see the
// runner): a library that maps shared memory now finds no page behind it, which is SIGBUS for whoever did not
// ask first.
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

static const char filler[] = "/dev/shm/papaya-test-filler";

static void fill(void) {
  static char zeros[1 << 16];
  const int file = open(filler, O_CREAT | O_WRONLY, 0600);
  size_t bytes = sizeof zeros;
  while (bytes > 0) {
    const ssize_t written = write(file, zeros, bytes);
    if (written <= 0) bytes /= 2;  // to the last byte
  }
  close(file);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  // Natively these calls make MPI allocate what it allocates on demand.
  static double in[8192], out[8192];
  PMPI_Allreduce(in, out, 8192, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  PMPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) fill();
  PMPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 300; ++i) {
    const int elements = i % 3 == 0 ? 1 : i % 3 == 1 ? 100 : 8192;
    for (int j = 0; j < elements; ++j) in[j] = rank + i;
    CHECK(COUNTED(MPI_Allreduce, in, out, elements, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (int j = 0; j < elements; ++j) CHECK(out[j] == (double)ranks * i + 0.5 * ranks * (ranks - 1));
  }
  PMPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) unlink(filler);
  const int code = finish();
  MPI_Finalize();
  return code;
}
