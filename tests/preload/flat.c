// Calls of every collective that can be replaced, then communicators, each with two calls, by the thousand: memory,
// mappings and file descriptors must stay where they are. The last communicator has some calls of each.
//   flat CALLS COMMUNICATORS
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>

#include "check.h"
#include "resources.h"

// Less than a small allocation for each call or communicator after the first look would add up to.
enum { allowed_kib = 700 };
enum { last_calls = 20, kinds = 9, numbers = 200, most_ranks = 8 };

static int rank, ranks;

static void call(int kind, MPI_Comm comm, int i) {
  static int send[most_ranks * numbers], receive[most_ranks * numbers];
  const int count = i / kinds % 3 == 0 ? numbers : 1 + i % 7, last = count * ranks - 1, sum = ranks * (ranks - 1) / 2;
  int counts[most_ranks], places[most_ranks];
  for (int r = 0; r < ranks; ++r) {
    counts[r] = count;
    places[r] = r * count;
  }
  send[0] = send[count - 1] = send[last] = receive[0] = rank + i;
  switch (kind) {
    case 0:
      COUNTED(MPI_Allreduce, send, receive, count, MPI_INT, MPI_SUM, comm);
      CHECK(receive[count - 1] == sum + ranks * i);
      break;
    case 1:
      COUNTED(MPI_Reduce, send, receive, count, MPI_INT, MPI_SUM, i % ranks, comm);
      CHECK(rank != i % ranks || receive[0] == sum + ranks * i);
      break;
    case 2:
      COUNTED(MPI_Bcast, receive, 1, MPI_INT, i % ranks, comm);
      CHECK(receive[0] == i % ranks + i);
      break;
    case 3:
      COUNTED(MPI_Alltoall, send, count, MPI_INT, receive, count, MPI_INT, comm);
      CHECK(rank != ranks - 1 || receive[count - 1] == i);
      break;
    case 4:
      COUNTED(MPI_Allgather, send, count, MPI_INT, receive, count, MPI_INT, comm);
      CHECK(receive[last] == ranks - 1 + i);
      break;
    case 5:
      COUNTED(MPI_Allgatherv, send, count, MPI_INT, receive, counts, places, MPI_INT, comm);
      CHECK(receive[last] == ranks - 1 + i);
      break;
    case 6:
      COUNTED(MPI_Reduce_scatter, send, receive, counts, MPI_INT, MPI_SUM, comm);
      CHECK(rank != ranks - 1 || receive[count - 1] == sum + ranks * i);
      break;
    case 7:
      COUNTED(MPI_Reduce_scatter_block, send, receive, count, MPI_INT, MPI_SUM, comm);
      CHECK(rank != ranks - 1 || receive[count - 1] == sum + ranks * i);
      break;
    default:
      COUNTED(MPI_Barrier, comm);
  }
}

static void check_flat(const char* what, struct resources before) {
  const struct resources after = resources_now();
  fprintf(stderr, "rank %d, %s: %ld KiB, %ld mappings and %ld files more\n", rank, what, after.kib - before.kib,
          after.mappings - before.mappings, after.files - before.files);
  CHECK(after.kib - before.kib < allowed_kib);
  CHECK(after.mappings - before.mappings < 10);
  CHECK(after.files == before.files);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int calls = argc > 1 ? atoi(argv[1]) : 100000, communicators = argc > 2 ? atoi(argv[2]) : 10000;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > most_ranks) MPI_Abort(MPI_COMM_WORLD, 2);

  struct resources before = {0, 0, 0};
  for (int i = 0; i < calls; ++i) {
    // By then a record of the last calls has gone round once.
    if (i == calls / 2) before = resources_now();
    call(i % kinds, MPI_COMM_WORLD, i);
  }
  check_flat("calls", before);

  MPI_Comm copy;
  for (int i = 0; i < communicators; ++i) {
    if (i == communicators / 4) before = resources_now();
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    call(i % kinds, copy, i);
    call((i + 1 + i / kinds % 5) % kinds, copy, i);
    MPI_Comm_free(&copy);
  }
  check_flat("communicators", before);

  // There is still memory to set everything up. Of bcast and reduce that takes some calls.
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  unsigned long (*const replaced)(const char*) = (unsigned long (*)(const char*))dlsym(RTLD_DEFAULT, "papaya_replaced");
  const char* const names[] = {"allreduce", "reduce",     "bcast",          "alltoall",
                               "allgather", "allgatherv", "reduce_scatter", "reduce_scatter_block",
                               "barrier"};
  for (int kind = 0; kind < kinds; ++kind) {
    const unsigned long calls_before = replaced == NULL ? 0 : replaced(names[kind]);
    for (int i = 0; i < last_calls; ++i) {
      call(kind, copy, kind);
      COUNTED(MPI_Barrier, copy);
    }
    // Not every algorithm of MPI_Allgather serves MPI_Allgatherv.
    const char* const chosen = getenv("PAPAYA_ALLGATHER");
    const int may_be_native = kind == 5 && (chosen == NULL || strncmp(chosen, "arrival_allgather", 17) != 0);
    CHECK(replaced == NULL || may_be_native || replaced(names[kind]) > calls_before);
  }
  MPI_Comm_free(&copy);
  const int code = finish();
  MPI_Finalize();
  return code;
}
