// Calls like the last one, for which the decision is remembered, and what comes between them: other sizes, a hint, and
// derived datatypes, whose handles stand for another type once they have been freed, on some ranks or on all.
#include <mpi.h>

#include "check.h"

enum { small = 2, large = 2048, repeats = 20, most_ranks = 8 };

static double mine[large], all[most_ranks * large];

// One element of `type`, which are `count` doubles, to rank 0.
static void gather(MPI_Datatype type, int elements, int count, int rank, int ranks, int call) {
  for (int i = 0; i < count; ++i) mine[i] = 1e4 * rank + call + i;
  CHECK(COUNTED(MPI_Gather, mine, elements, type, all, elements, type, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
  for (int i = 0; i < ranks * count && rank == 0; ++i) CHECK(all[i] == 1e4 * (i / count) + call + i % count);
}

static void gather_derived(int count, int rank, int ranks) {
  MPI_Datatype type;
  MPI_Type_contiguous(count, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < repeats; ++i) gather(type, 1, count, rank, ranks, i);
  MPI_Type_free(&type);
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  for (int i = 0; i < repeats; ++i) gather(MPI_DOUBLE, small, small, rank, ranks, i);
  for (int i = 0; i < 2 * repeats; ++i)
    gather(MPI_DOUBLE, i % 2 ? small : large, i % 2 ? small : large, rank, ranks, i);

  // The next type has the handle of the last one, on rank 0 another one.
  MPI_Datatype between = MPI_DATATYPE_NULL;
  for (int i = 0; i < 3; ++i) {
    gather_derived(small, rank, ranks);
    if (rank == 0 && i == 1) MPI_Type_contiguous(3, MPI_INT, &between);
    gather_derived(large, rank, ranks);
  }
  if (between != MPI_DATATYPE_NULL) MPI_Type_free(&between);

  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "papaya_gather", "arrival_gather");
  MPI_Comm_set_info(MPI_COMM_WORLD, info);
  MPI_Info_free(&info);
  for (int i = 0; i < 2 * repeats; ++i) gather(MPI_DOUBLE, small, small, rank, ranks, i);

  const int code = finish();
  MPI_Finalize();
  return code;
}
