// Wrong arguments, one case after the other; prints the error class of each and how often the error handler
// ran. The runner compares the output with and without papaya: it must be the same, line by line.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks;
static int only = -1;
static int handled = 0;  // calls of the error handler
// What this rank has to say. Rank 0 prints everybody's: launchers cut lines that several ranks write.
static char said[1 << 16];
static int length = 0;
static int in[64], out[64];
static int few[64], places[64];  // counts of zero are counts

static void on_error(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  ++handled;
}

static void show(const char* handler, const char* name, int code) {
  int error_class = -1;
  MPI_Error_class(code, &error_class);
  const char* text = error_class == MPI_SUCCESS        ? "SUCCESS"
                     : error_class == MPI_ERR_BUFFER   ? "BUFFER"
                     : error_class == MPI_ERR_COUNT    ? "COUNT"
                     : error_class == MPI_ERR_TYPE     ? "TYPE"
                     : error_class == MPI_ERR_COMM     ? "COMM"
                     : error_class == MPI_ERR_ROOT     ? "ROOT"
                     : error_class == MPI_ERR_OP       ? "OP"
                     : error_class == MPI_ERR_ARG      ? "ARG"
                     : error_class == MPI_ERR_TRUNCATE ? "TRUNCATE"
                                                       : "other";
  length += snprintf(said + length, sizeof said - length, "%d %s %s: %s (%d), handler calls %d\n", rank, handler, name,
                     text, error_class, handled);
  if (length >= (int)sizeof said) MPI_Abort(MPI_COMM_WORLD, 3);
  handled = 0;
}

static void run_all(const char* handler) {
  const MPI_Comm world = MPI_COMM_WORLD;
  int number = 0;
#define SHOW(name, call)                                       \
  do {                                                         \
    if (only < 0 || only == number) show(handler, name, call); \
    ++number;                                                  \
  } while (0)
  SHOW("allreduce, no communicator", MPI_Allreduce(in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL));
#if !defined MPICH_NUMVERSION || MPICH_NUMVERSION < 50000000
  // MPICH 5.0 ends in a failed assertion.
  SHOW("allreduce, no type", MPI_Allreduce(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, world));
#endif
  SHOW("allreduce, no operation", MPI_Allreduce(in, out, 1, MPI_INT, MPI_OP_NULL, world));
  SHOW("allreduce, BAND of doubles", MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_BAND, world));
  SHOW("allreduce, MAXLOC of ints", MPI_Allreduce(in, out, 1, MPI_INT, MPI_MAXLOC, world));
#ifdef OPEN_MPI
  // MPICH does not look at these and crashes.
  SHOW("allreduce, negative count", MPI_Allreduce(in, out, -1, MPI_INT, MPI_SUM, world));
  SHOW("allreduce, in place as receive buffer", MPI_Allreduce(in, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, world));
  SHOW("reduce, negative count", MPI_Reduce(in, out, -3, MPI_INT, MPI_SUM, 0, world));
#endif
  SHOW("allreduce, no elements", MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, world));
  SHOW("allreduce, right", MPI_Allreduce(in, out, 1, MPI_INT, MPI_SUM, world));

  MPI_Datatype vector;
  MPI_Type_vector(2, 1, 2, MPI_INT, &vector);
  SHOW("allreduce, type not committed", MPI_Allreduce(in, out, 1, vector, MPI_SUM, world));
  MPI_Type_commit(&vector);
  SHOW("allreduce, SUM of a derived type", MPI_Allreduce(in, out, 1, vector, MPI_SUM, world));
  MPI_Type_free(&vector);

  SHOW("reduce, root too large", MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, ranks, world));
  SHOW("reduce, negative root", MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, -7, world));
  SHOW("reduce, BOR of floats", MPI_Reduce(in, out, 1, MPI_FLOAT, MPI_BOR, 0, world));
  SHOW("bcast, root too large", MPI_Bcast(in, 1, MPI_INT, ranks, world));
  SHOW("bcast, negative count", MPI_Bcast(in, -1, MPI_INT, 0, world));
  SHOW("bcast, no type", MPI_Bcast(in, 1, MPI_DATATYPE_NULL, 0, world));
  SHOW("alltoall, negative count", MPI_Alltoall(in, -1, MPI_INT, out, -1, MPI_INT, world));
  SHOW("alltoall, no type", MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_DATATYPE_NULL, world));
  SHOW("alltoallv, no type", MPI_Alltoallv(in, few, places, MPI_DATATYPE_NULL, out, few, places, MPI_INT, world));
  SHOW("alltoallv, no receive type",
       MPI_Alltoallv(in, few, places, MPI_INT, out, few, places, MPI_DATATYPE_NULL, world));
  SHOW("allgather, negative count", MPI_Allgather(in, -1, MPI_INT, out, 1, MPI_INT, world));
  SHOW("gather, root too large", MPI_Gather(in, 1, MPI_INT, out, 1, MPI_INT, ranks, world));
  SHOW("scatter, no communicator", MPI_Scatter(in, 1, MPI_INT, out, 1, MPI_INT, 0, MPI_COMM_NULL));
  SHOW("barrier, no communicator", MPI_Barrier(MPI_COMM_NULL));
  SHOW("scan, no operation", MPI_Scan(in, out, 1, MPI_INT, MPI_OP_NULL, world));
  SHOW("barrier, right", MPI_Barrier(world));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc > 1) only = atoi(argv[1]);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Errhandler own;
  MPI_Comm_create_errhandler(on_error, &own);

  // Errors without a communicator go to MPI_COMM_WORLD's handler or to MPI_COMM_SELF's, by the version of
  // MPI.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  run_all("return");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, own);
  run_all("own");
  // Once more after enough calls that a library which prepares itself late is prepared.
  for (int i = 0; i < 200; ++i) MPI_Allreduce(in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  run_all("late");

  if (rank != 0) MPI_Send(said, length, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
  for (int i = 0; rank == 0 && i < ranks; ++i) {
    if (i > 0) {
      MPI_Status status;
      MPI_Recv(said, sizeof said, MPI_CHAR, i, 0, MPI_COMM_WORLD, &status);
      MPI_Get_count(&status, MPI_CHAR, &length);
    }
    fwrite(said, 1, (size_t)length, stdout);
  }
  MPI_Errhandler_free(&own);
  MPI_Finalize();
  return 0;
}
