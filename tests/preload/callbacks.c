// Calls that end in unusual ways, and calls from where MPI calls the program back.
//
//   callbacks jump one|all       an error handler leaves a wrong MPI_Bcast by longjmp, on one rank or all
//
//   callbacks handler            an error handler on rank 0 makes the MPI_Allreduce of the others
//
//   callbacks attribute free|disconnect
//                                a delete callback makes collectives on the communicator being freed
//
//   callbacks by_rank            the same, with an attribute that rank 0 has had for longer than others
//
//   callbacks nested             the same, and another delete callback frees another communicator
//
//   callbacks crosswise          ranks free two communicators in different orders
//
//   callbacks wrong none|one     rank 2 is late; with `one` rank 0 makes a wrong MPI_Bcast first
//
//   callbacks refuse             a delete callback keeps a communicator from being freed
//
//   callbacks aliased            the same buffer sent and received, after many calls
//
//   callbacks name               a communicator gets its name after many calls
#include <mpi.h>
#include <setjmp.h>
#include <unistd.h>

#include "check.h"

static int rank, ranks;
static jmp_buf before_error;

static void some_calls(MPI_Comm comm, int calls) {
  for (int i = 0; i < calls; ++i) {
    int sum = rank + i;
    CHECK(COUNTED(MPI_Allreduce, MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    CHECK(sum == ranks * i + ranks * (ranks - 1) / 2);
  }
}

static void handle(MPI_Comm comm, MPI_Comm_errhandler_function* function) {
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(function, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Errhandler_free(&handler);
}

static void leave(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  longjmp(before_error, 1);
}

static void call(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  some_calls(MPI_COMM_WORLD, 1);
}

static int use(MPI_Comm comm, int key, void* value, void* extra) {
  (void)key;
  (void)value;
  (void)extra;
  int sum = 1;
  CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
  CHECK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
  CHECK(sum == ranks);
  return MPI_SUCCESS;
}

static void jump(int all) {
  handle(MPI_COMM_WORLD, leave);
  some_calls(MPI_COMM_WORLD, 50);
  for (volatile int i = 0; i < 3; ++i) {
    if (rank == 0 || all) {
      int value = 0;
      if (setjmp(before_error) == 0) {
        MPI_Bcast(&value, -1, MPI_INT, 0, MPI_COMM_WORLD);
        CHECK(!"the error handler runs");
      }
    }
    some_calls(MPI_COMM_WORLD, 1);
  }
  some_calls(MPI_COMM_WORLD, 100);
}

static void handler(void) {
  MPI_Comm twin;
  MPI_Comm_dup(MPI_COMM_WORLD, &twin);
  handle(twin, call);
  some_calls(MPI_COMM_WORLD, 50);
  int value = 0;
  if (rank == 0)
    COUNTED(MPI_Bcast, &value, -1, MPI_INT, 0, twin);
  else
    some_calls(MPI_COMM_WORLD, 1);
  some_calls(MPI_COMM_WORLD, 100);
  MPI_Comm_free(&twin);
}

// The communicator comes from MPI_Comm_idup, so the program's attribute may be there before any of a tool's.
static void attribute(int (*end)(MPI_Comm*)) {
  int key;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, use, &key, NULL);
  for (int i = 0; i < 5; ++i) {
    MPI_Comm comm;
    MPI_Request request;
    CHECK(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request) == MPI_SUCCESS);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_set_attr(comm, key, NULL);
    some_calls(comm, 12);
    CHECK(end(&comm) == MPI_SUCCESS);
  }
  some_calls(MPI_COMM_WORLD, 50);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL);
}

static int copy(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  (void)comm;
  (void)key;
  (void)extra;
  *(void**)out = in;
  *flag = 1;
  return MPI_SUCCESS;
}

// Rank 0's attribute was there when the communicator was made, the others' came later; a local matter.
static void attribute_by_rank(void) {
  int key;
  MPI_Comm_create_keyval(copy, use, &key, NULL);
  MPI_Comm first, twin;
  MPI_Comm_dup(MPI_COMM_WORLD, &first);
  if (rank == 0) MPI_Comm_set_attr(first, key, NULL);
  MPI_Comm_dup(first, &twin);
  if (rank != 0) MPI_Comm_set_attr(twin, key, NULL);
  some_calls(twin, 15);
  MPI_Comm_free(&twin);
  if (rank != 0) MPI_Comm_set_attr(first, key, NULL);
  MPI_Comm_free(&first);
  some_calls(MPI_COMM_WORLD, 50);
}

static MPI_Comm cached = MPI_COMM_NULL;

static int free_cached(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm;
  (void)key;
  (void)value;
  (void)extra;
  return cached == MPI_COMM_NULL ? MPI_SUCCESS : MPI_Comm_free(&cached);
}

// A library keeps a communicator of its own with the program's, and frees both together.
static void nested(void) {
  for (int order = 0; order < 2; ++order) {
    int keys[2];
    MPI_Comm_create_keyval(copy, use, &keys[order], NULL);
    MPI_Comm_create_keyval(copy, free_cached, &keys[1 - order], NULL);
    MPI_Comm first, twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_dup(MPI_COMM_WORLD, &cached);
    some_calls(cached, 15);
    for (int i = 0; i < 2; ++i) MPI_Comm_set_attr(first, keys[i], NULL);
    MPI_Comm_dup(first, &twin);
    some_calls(twin, 15);
    MPI_Comm_free(&twin);
    MPI_Comm_free(&first);
    some_calls(MPI_COMM_WORLD, 20);
  }
}

// No MPI waits in MPI_Comm_free, so programs free their communicators in an order of each rank's own.
static void crosswise(void) {
  for (int i = 0; i < 20; ++i) {
    MPI_Comm twins[2];
    for (int k = 0; k < 2; ++k) MPI_Comm_dup(MPI_COMM_WORLD, &twins[k]);
    for (int k = 0; k < 2; ++k) some_calls(twins[k], 15);
    MPI_Comm_free(&twins[rank % 2]);
    if (rank == 0) usleep(1000);
    MPI_Comm_free(&twins[1 - rank % 2]);
  }
}

static void wrong(int one) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int value = 0;
  if (one && rank == 0) CHECK(COUNTED(MPI_Bcast, &value, -1, MPI_INT, 0, MPI_COMM_WORLD) != MPI_SUCCESS);
  for (int i = 0; i < 100; ++i) {
    if (rank == 2) usleep(3000);
    some_calls(MPI_COMM_WORLD, 1);
  }
}

static int refuse(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  return MPI_ERR_OTHER;
}

static void refused(void) {
  int key, class = 0;
  MPI_Comm comm;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse, &key, NULL);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  some_calls(comm, 20);
  MPI_Comm_set_attr(comm, key, NULL);
  const int code = MPI_Comm_free(&comm);
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  printf("refused: class %d, communicator %s\n", class, comm == MPI_COMM_NULL ? "gone" : "there");
  if (comm != MPI_COMM_NULL) some_calls(comm, 20);
}

// The reduction last: what the others send to a root that has refused it meets MPI's next one.
static void aliased(void) {
  int values[2] = {1, 1}, sums[2];
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < 20; ++i)
    CHECK(COUNTED(MPI_Reduce, values, sums, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
  for (int count = 1; count < 3; ++count) {
    for (int i = 0; i < 20; ++i)
      CHECK(COUNTED(MPI_Allreduce, values, sums, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    int class = 0;
    const int code = COUNTED(MPI_Allreduce, values, values, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
    printf("rank %d: MPI_Allreduce of %d: class %d, %d\n", rank, count, class, values[0]);
    values[0] = values[1] = 1;
  }
  int class = 0;
  const int code = COUNTED(MPI_Reduce, values, rank == 0 ? values : sums, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  printf("rank %d: MPI_Reduce: class %d\n", rank, class);
}

static void name(void) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  some_calls(comm, 20);
  CHECK(MPI_Comm_set_name(comm, "first name") == MPI_SUCCESS);
  some_calls(comm, 20);
  CHECK(MPI_Comm_set_name(comm, "ocean") == MPI_SUCCESS);
  some_calls(comm, 20);
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  const char* detail = argc > 2 ? argv[2] : "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (strcmp(mode, "jump") == 0) jump(strcmp(detail, "all") == 0);
  if (strcmp(mode, "handler") == 0) handler();
  if (strcmp(mode, "attribute") == 0) attribute(strcmp(detail, "free") == 0 ? MPI_Comm_free : MPI_Comm_disconnect);
  if (strcmp(mode, "by_rank") == 0) attribute_by_rank();
  if (strcmp(mode, "nested") == 0) nested();
  if (strcmp(mode, "crosswise") == 0) crosswise();
  if (strcmp(mode, "wrong") == 0) wrong(strcmp(detail, "one") == 0);
  if (strcmp(mode, "refuse") == 0) refused();
  if (strcmp(mode, "aliased") == 0) aliased();
  if (strcmp(mode, "name") == 0) name();
  const int code = finish();
  MPI_Finalize();
  return code;
}
