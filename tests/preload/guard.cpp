// The destructor of a global object ends MPI: `guard calls` makes collectives there first.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "check.h"

namespace {

void some_calls(MPI_Comm comm) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  for (int i = 0; i < 50; ++i) {
    int sum = rank + i;
    CHECK(COUNTED(MPI_Allreduce, MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    CHECK(sum == ranks * i + ranks * (ranks - 1) / 2);
  }
}

struct Guard {
  bool calls = false;
  ~Guard() {
    if (calls) some_calls(MPI_COMM_WORLD);
    MPI_Finalize();
    if (finish() != 0) _Exit(1);
  }
} guard;

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  guard.calls = argc > 1 && std::strcmp(argv[1], "calls") == 0;
  MPI_Comm twin;
  MPI_Comm_dup(MPI_COMM_WORLD, &twin);
  some_calls(twin);
  some_calls(MPI_COMM_WORLD);
  return 0;
}
