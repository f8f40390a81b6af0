// Makes communicators, does a few collectives on them and frees them, thousands of times. Communicator
// contexts, memory, mappings and file descriptors must come back. MPI_COMM_SELF and communicators without
// calls are among them.
#include <dirent.h>
#include <mpi.h>
#include <stdlib.h>

#include "check.h"

// Natively memory stops growing well before a third of the rounds.
enum { allowed_kib = 4 * 1024 };

static long resident_kib(void) {
  FILE* status = fopen("/proc/self/status", "r");
  char line[256];
  long kib = -1;
  while (status != NULL && fgets(line, sizeof line, status) != NULL)
    if (sscanf(line, "VmRSS: %ld", &kib) == 1) break;
  if (status != NULL) fclose(status);
  return kib;
}

static long lines_in(const char* path) {
  FILE* file = fopen(path, "r");
  long lines = 0;
  for (int c; file != NULL && (c = fgetc(file)) != EOF;) lines += c == '\n';
  if (file != NULL) fclose(file);
  return lines;
}

static long open_files(void) {
  DIR* folder = opendir("/proc/self/fd");
  long files = 0;
  while (folder != NULL && readdir(folder) != NULL) ++files;
  if (folder != NULL) closedir(folder);
  return files;
}

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
  long kib = 0, mappings = 0, files = 0;
  for (int round = 0; round < rounds; ++round) {
    if (round == first_look) {
      kib = resident_kib();
      mappings = lines_in("/proc/self/maps");
      files = open_files();
    }
    MPI_Comm copy, part;
    MPI_Comm_dup(round % 8 == 0 ? MPI_COMM_SELF : MPI_COMM_WORLD, &copy);
    MPI_Comm_split(MPI_COMM_WORLD, round % 2 == 0 ? rank % 2 : 0, -rank, &part);
    static const int calls[] = {0, 1,  3, 0,
                                2, 40, 0, 1};  // 40: enough for a library that prepares itself late
    for (int i = 0; i < calls[round % 8]; ++i) allreduce(copy, i);
    for (int i = 0; i < calls[(round + 3) % 8]; ++i) allreduce(part, i);
    if (round % 8 == 0) allreduce(MPI_COMM_SELF, round);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&part);
  }
  const long more_kib = resident_kib() - kib, more_mappings = lines_in("/proc/self/maps") - mappings;
  const long more_files = open_files() - files;
  fprintf(stderr, "rank %d: %ld KiB, %ld mappings and %ld files more than after %d of %d rounds\n", rank,
          more_kib, more_mappings, more_files, first_look, rounds);
  CHECK(more_kib < allowed_kib);
  CHECK(more_mappings < 40);
  CHECK(more_files < 10);
  const int code = finish();
  MPI_Finalize();
  return code;
}
