// A program that wants shared memory for itself: collectives of all sizes on several communicators first, then a window
// of 36 MiB that it fills. Meant for a private /dev/shm of 64 MiB (see the runner), as containers have.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { communicators = 4, calls = 12, elements = 1 << 17 };

static int rank, ranks;

static void collectives(MPI_Comm comm, double* in, double* out) {
  static const int counts[] = {1, 1000, elements};
  for (int size = 0; size < 3; ++size)
    for (int call = 0; call < calls; ++call) {
      const int count = counts[size];
      in[0] = in[count - 1] = rank + call;
      CHECK(COUNTED(MPI_Allreduce, in, out, count, MPI_DOUBLE, MPI_SUM, comm) == MPI_SUCCESS);
      CHECK(out[0] == ranks * call + ranks * (ranks - 1) / 2.0 && out[count - 1] == out[0]);
      out[count - 1] = rank == 0 ? call : -1;
      CHECK(COUNTED(MPI_Bcast, out, count, MPI_DOUBLE, 0, comm) == MPI_SUCCESS);
      CHECK(out[count - 1] == call);
      CHECK(COUNTED(MPI_Allgather, in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, comm) == MPI_SUCCESS);
      for (int peer = 0; peer < ranks; ++peer) CHECK(out[(size_t)peer * count] == peer + call);
    }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const size_t bytes = (size_t)36 << 20;
  double* const in = calloc(elements, sizeof *in);
  double* const out = calloc((size_t)elements * ranks, sizeof *out);
  MPI_Comm comms[communicators];
  for (int i = 0; i < communicators; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    collectives(comms[i], in, out);
  }
  char* own = NULL;
  char* first = NULL;
  MPI_Win window;
  CHECK(MPI_Win_allocate_shared(rank == 0 ? (MPI_Aint)bytes : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window) ==
        MPI_SUCCESS);
  MPI_Aint size;
  int unit;
  MPI_Win_shared_query(window, 0, &size, &unit, &first);
  const size_t begin = bytes / ranks * rank, end = bytes / ranks * (rank + 1);
  memset(first + begin, 1 + rank, end - begin);
  MPI_Win_fence(0, window);
  for (int peer = 0; peer < ranks; ++peer) CHECK(first[bytes / ranks * peer] == 1 + peer);
  for (int i = 0; i < communicators; ++i) {
    collectives(comms[i], in, out);
    MPI_Comm_free(&comms[i]);
  }
  MPI_Win_free(&window);
  free(in);
  free(out);
  const int code = finish();
  MPI_Finalize();
  return code;
}
