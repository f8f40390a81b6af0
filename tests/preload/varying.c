// MPI_Alltoallv whose counts differ from pair to pair, in place and not, with a derived type on some ranks,
// and none at all; MPI_Alltoall between.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>

#include "check.h"

enum { calls = 40, most_ranks = 8 };

static int bytes_between(int from, int to, int call, int in_place) {
  if (in_place && from > to) {
    const int first = to;
    to = from;
    from = first;
  }
  const int kind = (from * 5 + to * 3 + call) % 4;
  const int most = call % 10 == 7 ? 300000 : call % 10 == 3 ? 0 : call % 2 == 0 ? 8 : 3000;
  return kind == 0 ? 0 : 8 * (most * kind / 3 / 8 + (most > 0));
}

static char value(int from, int to, int call, int at) {
  return (char)(from * 31 + to * 17 + call * 7 + at * 5);
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Datatype eight;
  MPI_Type_contiguous(8, MPI_CHAR, &eight);
  MPI_Type_commit(&eight);
  const size_t room = (size_t)ranks * 300100;
  char* buffers[2] = {malloc(room), malloc(room)};
  for (int call = 0; call < calls; ++call) {
    const int in_place = call % 4 == 1;
    const int unit = (call + rank) % 3 == 0 ? 8 : 1;
    const MPI_Datatype type = unit == 8 ? eight : MPI_CHAR;
    int counts[2][most_ranks], places[2][most_ranks];
    memset(buffers[0], 1, room);
    memset(buffers[1], 1, room);
    for (int side = 0; side < 2; ++side)
      for (int peer = 0, end = 1; peer < ranks; ++peer) {
        const int bytes =
            side == 0 ? bytes_between(rank, peer, call, in_place) : bytes_between(peer, rank, call, in_place);
        counts[side][peer] = bytes / unit;
        places[side][peer] = end;
        end += bytes / unit + 2;
      }
    for (int peer = 0; peer < ranks; ++peer)
      for (int i = 0; i < counts[0][peer] * unit; ++i)
        buffers[in_place][places[in_place][peer] * unit + i] = value(rank, peer, call, i);
    const int code = in_place ? COUNTED(MPI_Alltoallv, MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, buffers[1],
                                        counts[1], places[1], type, MPI_COMM_WORLD)
                              : COUNTED(MPI_Alltoallv, buffers[0], counts[0], places[0], type, buffers[1], counts[1],
                                        places[1], type, MPI_COMM_WORLD);
    CHECK(code == MPI_SUCCESS);
    int wrong = 0;
    for (int peer = 0, end = unit; peer < ranks; ++peer) {
      const int begin = places[1][peer] * unit;
      for (int i = end; i < begin; ++i) wrong += buffers[1][i] != 1;
      end = begin + counts[1][peer] * unit;
      for (int i = begin; i < end; ++i) wrong += buffers[1][i] != value(peer, rank, call, i - begin);
    }
    CHECK(wrong == 0);
    for (int peer = 0; peer < ranks; ++peer) ((int*)buffers[0])[peer] = rank * 100 + peer + call;
    CHECK(COUNTED(MPI_Alltoall, buffers[0], 1, MPI_INT, buffers[1], 1, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (int peer = 0; peer < ranks; ++peer) CHECK(((int*)buffers[1])[peer] == peer * 100 + rank + call);
  }
  // Each collective's calls are counted as its own, also where one algorithm serves both.
  unsigned long (*replaced)(const char*) = (unsigned long (*)(const char*))dlsym(RTLD_DEFAULT, "papaya_replaced");
  const char* forced = getenv("PAPAYA_ALLTOALL");
  if (replaced != NULL && forced != NULL && strcmp(forced, "arrival_alltoall") == 0)
    CHECK(replaced("alltoallv") == calls && replaced("alltoall") == calls);
  MPI_Type_free(&eight);
  free(buffers[0]);
  free(buffers[1]);
  const int code = finish();
  MPI_Finalize();
  return code;
}
