// Makes communicators, does a few collectives on them and frees them, thousands of times. Communicator
// contexts, memory, mappings and file descriptors must come back. MPI_COMM_SELF and communicators without
// calls are among them.
#include <mpi.h>
#include <stdlib.h>

#include "check.h"
#include "resources.h"

// Natively memory stops growing well before a third of the rounds.
enum { allowed_kib = 4 * 1024 };

static void allreduce(MPI_Comm comm, int i) {
  int rank, ranks, sum = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  const int in = rank + i;
  CHECK(COUNTED(MPI_Allreduce, &in, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
  CHECK(sum == ranks * i + ranks * (ranks - 1) / 2);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int rounds = argc > 1 ? atoi(argv[1]) : 3000, first_look = rounds / 3;
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  struct resources before = {0, 0, 0};
  for (int round = 0; round < rounds; ++round) {
    if (round == first_look) before = resources_now();
    MPI_Comm copy, part;
    MPI_Comm_dup(round % 8 == 0 ? MPI_COMM_SELF : MPI_COMM_WORLD, &copy);
    MPI_Comm_split(MPI_COMM_WORLD, round % 2 == 0 ? rank % 2 : 0, -rank, &part);
    static const int calls[] = {0, 1, 3, 0, 2, 40, 0, 1};  // 40: enough for a library that prepares itself late
    for (int i = 0; i < calls[round % 8]; ++i) allreduce(copy, i);
    for (int i = 0; i < calls[(round + 3) % 8]; ++i) allreduce(part, i);
    if (round % 8 == 0) allreduce(MPI_COMM_SELF, round);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&part);
  }
  const struct resources after = resources_now();
  const long more_kib = after.kib - before.kib, more_mappings = after.mappings - before.mappings;
  const long more_files = after.files - before.files;
  fprintf(stderr, "rank %d: %ld KiB, %ld mappings and %ld files more than after %d of %d rounds\n", rank, more_kib,
          more_mappings, more_files, first_look, rounds);
  CHECK(more_kib < allowed_kib);
  CHECK(more_mappings < 40);
  CHECK(more_files < 10);
  const int code = finish();
  MPI_Finalize();
  return code;
}
