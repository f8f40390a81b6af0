// One wrong datatype or operation a run, on communicators that return errors; MPI itself crashes on some of
// them.
//   invalid CASE   prints the error class that every rank got, of a call early in the run and of one late in
//   it
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void keep(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)in;
  (void)inout;
  (void)length;
  (void)type;
}

static int in[64], out[64];

static int wrong_call(const char* name, MPI_Comm comm) {
  MPI_Datatype type;
  MPI_Op op;
  MPI_Op_create(keep, 1, &op);
  MPI_Type_contiguous(3, MPI_INT, &type);
  int code = MPI_SUCCESS;
  if (strcmp(name, "uncommitted") == 0) code = MPI_Allreduce(in, out, 1, type, op, comm);
  if (strcmp(name, "uncommitted_bcast") == 0) code = MPI_Bcast(in, 1, type, 0, comm);
  MPI_Type_commit(&type);
  const MPI_Datatype freed_type = type;
  const MPI_Op freed_op = op;
  if (strcmp(name, "replace") == 0) code = MPI_Allreduce(in, out, 1, MPI_INT, MPI_REPLACE, comm);
  if (strcmp(name, "garbage_op") == 0) code = MPI_Allreduce(in, out, 1, MPI_INT, (MPI_Op)(intptr_t)0x12345, comm);
  if (strcmp(name, "garbage_type") == 0) code = MPI_Bcast(in, 1, (MPI_Datatype)(intptr_t)0x4c012345, 0, comm);
  MPI_Type_free(&type);
  MPI_Op_free(&op);
  if (strcmp(name, "freed_type") == 0) code = MPI_Bcast(in, 1, freed_type, 0, comm);
  if (strcmp(name, "freed_op") == 0) code = MPI_Allreduce(in, out, 1, MPI_INT, freed_op, comm);
  int error_class = -1;
  MPI_Error_class(code, &error_class);
  return error_class;
}

int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  int classes[2], all[16], ranks, rank;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  classes[0] = wrong_call(name, comm);
  for (int i = 0; i < 50; ++i) MPI_Allreduce(in, out, 1, MPI_INT, MPI_SUM, comm);
  classes[1] = wrong_call(name, comm);
  MPI_Gather(classes, 2, MPI_INT, all, 2, MPI_INT, 0, MPI_COMM_WORLD);
  for (int i = 0; rank == 0 && i < ranks; ++i)
    printf("%s: rank %d: %d, late %d\n", name, i, all[2 * i], all[2 * i + 1]);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
