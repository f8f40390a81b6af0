// What the programs here check, and say of it.
#pragma once

#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank, ranks, failures;

#define CHECK(good)                                                                 \
  do {                                                                              \
    if (!(good)) {                                                                  \
      if (failures++ < 10) printf("rank %d, line %d: %s\n", rank, __LINE__, #good); \
    }                                                                               \
  } while (0)

static inline void begin(int* argc, char*** argv) {
  int level = 0;
  if (*argc > 1 && strcmp((*argv)[1], "threads") == 0)
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
  else
    MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

// The exit status.
static inline int end(void) {
  int all = 0;
  MPI_Reduce(&failures, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  if (rank == 0 && all == 0) printf("all right\n");
  return failures == 0 ? 0 : 1;
}
