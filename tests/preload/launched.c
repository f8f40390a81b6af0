// What a program meets between its start and its end: run.py launches it with papaya on all ranks, on some or on none.
//   launched [chdir FOLDER] [named] [hidden] [planted FILE] [signal]
// Every rank sends to rank 0, which receives with wildcards, or if `named` without; then all make some collectives.
// chdir: enters FOLDER before MPI_Init. hidden: calls PMPI_Init. planted: somebody has put a link to FILE in the output
// folder, and SIGUSR1 asks what the ranks do. signal: it comes while the rank is inside MPI_Finalize.
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

// MPI_Finalize deletes the attributes of MPI_COMM_SELF first.
static int raise_signal(MPI_Comm comm, int keyval, void* value, void* state) {
  (void)comm, (void)keyval, (void)value, (void)state;
  raise(SIGUSR1);
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  int signals = 0, named = 0, hidden = 0;
  const char* planted = NULL;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "signal") == 0) signals = 1;
    if (strcmp(argv[i], "named") == 0) named = 1;
    if (strcmp(argv[i], "hidden") == 0) hidden = 1;
    if (strcmp(argv[i], "planted") == 0 && i + 1 < argc) planted = argv[++i];
    if (strcmp(argv[i], "chdir") == 0 && i + 1 < argc && chdir(argv[++i]) != 0) {
      perror(argv[i]);
      return 1;
    }
  }
  hidden ? PMPI_Init(&argc, &argv) : MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  // A message of papaya's would be taken for one of the program's here.
  for (int i = 1; i < ranks; ++i) {
    int value = 0;
    MPI_Status status;
    if (rank == 0) {
      MPI_Recv(&value, 1, MPI_INT, named ? i : MPI_ANY_SOURCE, named ? i : MPI_ANY_TAG, MPI_COMM_WORLD, &status);
      CHECK(value == 100 * status.MPI_SOURCE && status.MPI_TAG == status.MPI_SOURCE);
    } else if (rank == i) {
      value = 100 * rank;
      MPI_Send(&value, 1, MPI_INT, 0, rank, MPI_COMM_WORLD);
    }
  }
  for (int i = 0; i < 20; ++i) {
    int sum = 0, word = rank == i % ranks ? i : -1;
    COUNTED(MPI_Allreduce, &rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == ranks * (ranks - 1) / 2);
    COUNTED(MPI_Bcast, &word, 1, MPI_INT, i % ranks, MPI_COMM_WORLD);
    CHECK(word == i);
    COUNTED(MPI_Barrier, MPI_COMM_WORLD);
  }
  if (planted != NULL && rank == 0) {
    char name[4096];
    snprintf(name, sizeof name, "%s/asked.txt", getenv("PAPAYA_OUTPUT"));
    CHECK(symlink(planted, name) == 0);
    raise(SIGUSR1);
    usleep(2500000);  // the answer comes within 1.3 s
  }
  if (signals) {
    int keyval;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, raise_signal, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &keyval);
  }
  const int code = finish();
  MPI_Finalize();
  if (signals) printf("finalized\n");
  return code;
}
