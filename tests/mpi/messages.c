// How many messages MPI sends in a collective call, which tells its algorithms apart: a line for each, of the name, the
// bytes and the messages of all ranks. tests/mpi/count_messages.c counts, preloaded.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  unsigned long (*const sent)(void) = (unsigned long (*)(void))dlsym(RTLD_DEFAULT, "messages_sent");
  if (sent == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  static const char* const names[] = {"allreduce", "reduce", "bcast", "alltoall", "allgather"};
  for (int count = 16; count <= 8192; count *= 512) {
    const size_t all = (size_t)count * (size_t)ranks;
    double* const in = calloc(all, sizeof *in);
    double* const out = calloc(all, sizeof *out);
    for (int which = 0; which < 5; ++which) {
      MPI_Barrier(MPI_COMM_WORLD);
      const unsigned long before = sent();
      if (which == 0) MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      if (which == 1) MPI_Reduce(in, out, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
      if (which == 2) MPI_Bcast(in, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
      if (which == 3) MPI_Alltoall(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, MPI_COMM_WORLD);
      if (which == 4) MPI_Allgather(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, MPI_COMM_WORLD);
      const unsigned long mine = sent() - before;
      unsigned long sum = 0;
      MPI_Reduce(&mine, &sum, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
      if (rank == 0) printf("%s %zu %lu\n", names[which], (size_t)count * sizeof *in, sum);
    }
    free(in);
    free(out);
  }
  MPI_Finalize();
  return 0;
}
