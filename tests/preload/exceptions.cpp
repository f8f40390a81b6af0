// An error handler throws out of wrong calls, and the program goes on.
#include <mpi.h>

#include <stdexcept>

#include "check.h"

static void refuse(MPI_Comm*, int*, ...) {
  throw std::runtime_error("refused");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0, caught = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(refuse, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  for (int i = 0; i < 100; ++i) {
    int sum = rank + i, value = 0;
    if (i % 20 == 10) try {
        if (i % 40 == 10)
          MPI_Allreduce(&value, &sum, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        else
          MPI_Bcast(&value, -1, MPI_INT, 0, MPI_COMM_WORLD);
      } catch (const std::runtime_error&) {
        ++caught;
      }
    CHECK(COUNTED(MPI_Allreduce, MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(sum == ranks * i + ranks * (ranks - 1) / 2);
  }
  CHECK(caught == 5);
  const int code = finish();
  MPI_Errhandler_free(&handler);
  MPI_Finalize();
  return code;
}
