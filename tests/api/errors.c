// What is wrong in a use of weakly consistent collectives: an error of the right class and a sentence on every rank,
// and everything goes on afterwards. At least two ranks.
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "papaya.h"

static void expect(int line, int code, int wanted, const char* words) {
  int class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  const int is_right = class == wanted && (wanted == MPI_SUCCESS || strstr(papaya_error(), words) != NULL);
  if (is_right) return;
  printf("rank %d, line %d: class %d instead of %d, '%s' instead of '%s'\n", rank, line, class, wanted, papaya_error(),
         words);
  ++failures;
}
#define EXPECT(call, class, words) expect(__LINE__, call, class, words)
#define GOOD(call) expect(__LINE__, call, MPI_SUCCESS, "")

static int create(MPI_Comm comm, MPI_Count count, MPI_Datatype type, MPI_Op op, int slack, const char* algorithm) {
  papaya_weak handle = (papaya_weak)&rank;
  const int code = papaya_ssp_allreduce_create(comm, count, type, op, slack, algorithm, &handle);
  CHECK(code == MPI_SUCCESS || handle == PAPAYA_WEAK_NULL);
  if (code == MPI_SUCCESS) papaya_weak_free(&handle);
  return code;
}

// One rank alone, or all: the same error on all ranks.
static void creation(MPI_Comm comm) {
  const int is_odd = rank == ranks - 1;
  EXPECT(create(comm, -1, MPI_INT, MPI_SUM, 0, NULL), MPI_ERR_COUNT, "count is -1");
  EXPECT(create(comm, is_odd ? -1 : 1, MPI_INT, MPI_SUM, 0, NULL), MPI_ERR_COUNT, "count is -1");
  EXPECT(create(comm, is_odd ? 5 : 6, MPI_INT, MPI_SUM, 0, NULL), MPI_ERR_COUNT, "count differs");
  EXPECT(create(comm, 5, is_odd ? MPI_INT : MPI_DOUBLE, MPI_SUM, 0, NULL), MPI_ERR_TYPE, "size of type differs");
  EXPECT(create(comm, 5, MPI_INT, is_odd ? MPI_MAX : MPI_SUM, 0, NULL), MPI_ERR_OP, "op differs");
  EXPECT(create(comm, 5, MPI_INT, MPI_SUM, is_odd ? 1 : 2, NULL), MPI_ERR_ARG,
         "slack differs between the ranks of the "
         "communicator: 1 to 2");
  EXPECT(create(comm, 5, MPI_INT, MPI_SUM, -1, NULL), MPI_ERR_ARG, "slack is -1");
  EXPECT(create(comm, 5, MPI_DATATYPE_NULL, MPI_SUM, 0, NULL), MPI_ERR_TYPE, "committed");
  EXPECT(create(comm, 5, MPI_INT, MPI_OP_NULL, 0, NULL), MPI_ERR_OP, "not an operation");
  EXPECT(create(comm, 5, MPI_DOUBLE, MPI_BAND, 0, NULL), MPI_ERR_OP, "does not define");
  EXPECT(create(comm, 5, MPI_INT, MPI_SUM, 0, "ssp_hypercub"), MPI_ERR_ARG, "did you mean ssp_hypercube");
  EXPECT(create(comm, 5, MPI_INT, MPI_SUM, 0, "ssp_hypercube:slak=1"), MPI_ERR_ARG, "no parameter 'slak'");
  EXPECT(create(comm, 5, MPI_INT, MPI_SUM, 0, "ssp_hypercube:slack"), MPI_ERR_ARG, "not parameter=number");
  EXPECT(create(MPI_COMM_NULL, 5, MPI_INT, MPI_SUM, 0, NULL), MPI_ERR_COMM, "MPI_COMM_NULL");
  // More than there is memory.
  EXPECT(create(comm, (MPI_Count)1 << 44, MPI_DOUBLE, MPI_SUM, 1, "ssp_hypercube"), MPI_ERR_NO_MEM, "fewer elements");
  EXPECT(create(comm, (MPI_Count)1 << 40, MPI_DOUBLE, MPI_SUM, 1 << 20, NULL), MPI_ERR_NO_MEM, "less slack");
  MPI_Datatype loose;
  MPI_Type_contiguous(2, MPI_INT, &loose);
  EXPECT(create(comm, 5, loose, MPI_SUM, 0, NULL), MPI_ERR_TYPE, "MPI_Type_commit");
  MPI_Type_commit(&loose);
  EXPECT(create(comm, 5, loose, MPI_SUM, 0, NULL), MPI_ERR_OP, "does not define");
  MPI_Type_free(&loose);
  EXPECT(papaya_ssp_allreduce_create(comm, 1, MPI_INT, MPI_SUM, 0, NULL, NULL), MPI_ERR_ARG, "null pointer");
}

static papaya_weak shared;
static void* use_shared(void* argument) {
  (void)argument;
  long one = 1;
  do usleep(100);
  while (papaya_weak_call(shared, MPI_IN_PLACE, &one, NULL) == MPI_SUCCESS || strstr(papaya_error(), "another thread"));
  return strstr(papaya_error(), "freed") != NULL ? NULL : (void*)1;
}

static void use(MPI_Comm comm) {
  long one = 1, sum = 0;
  int flag = 0;
  papaya_weak_status status;
  papaya_weak handle = PAPAYA_WEAK_NULL;
  EXPECT(papaya_weak_call(handle, &one, &sum, NULL), MPI_ERR_ARG, "PAPAYA_WEAK_NULL");
  EXPECT(papaya_weak_free(&handle), MPI_ERR_ARG, "PAPAYA_WEAK_NULL");
  EXPECT(papaya_weak_free(NULL), MPI_ERR_ARG, "PAPAYA_WEAK_NULL");
  GOOD(papaya_ssp_allreduce_create(comm, 1, MPI_LONG, MPI_SUM, 0, NULL, &handle));
  EXPECT(papaya_weak_call(handle, NULL, &sum, NULL), MPI_ERR_BUFFER, "null");
  EXPECT(papaya_weak_call(handle, &one, NULL, NULL), MPI_ERR_BUFFER, "null");
  EXPECT(papaya_weak_set_limit(handle, -1), MPI_ERR_ARG, "seconds is -1; it must be 0");
  EXPECT(papaya_weak_get_info(handle, NULL, 5), MPI_ERR_ARG, "no room");
  EXPECT(papaya_weak_wait(handle, 0, NULL, NULL), MPI_ERR_ARG, "flag");
  EXPECT(papaya_weak_wait(handle, NAN, &flag, NULL), MPI_ERR_ARG, "no number");

  // Rank 0 is late: the others' calls stay under way, and it is named.
  GOOD(papaya_weak_set_limit(handle, 0.05));
  if (rank == 0) {
    MPI_Barrier(comm);
    GOOD(papaya_weak_set_limit(handle, 0));
    GOOD(papaya_weak_call(handle, &one, &sum, &status));
  } else {
    int code = papaya_weak_call(handle, &one, &sum, &status);
    EXPECT(code, MPI_ERR_PENDING, "call 1 still waits for");
    if (rank == 1) EXPECT(code, MPI_ERR_PENDING, "rank 0");
    EXPECT(papaya_weak_call(handle, &one, &sum, &status), MPI_ERR_REQUEST, "under way");
    EXPECT(papaya_weak_start(handle, &one, &sum), MPI_ERR_REQUEST, "under way");
    papaya_weak copy = handle;
    EXPECT(papaya_weak_free(&copy), MPI_ERR_REQUEST, "under way");
    GOOD(papaya_weak_wait(handle, 0.01, &flag, &status));
    CHECK(flag == 0);
    MPI_Barrier(comm);
    GOOD(papaya_weak_wait(handle, -1, &flag, &status));
    CHECK(flag == 1);
  }
  CHECK(sum == ranks && status.clock == 1 && status.ranks == ranks);
  GOOD(papaya_weak_test(handle, &flag, NULL));  // nothing is under way
  CHECK(flag == 1);
  papaya_weak freed = handle;
  GOOD(papaya_weak_free(&handle));
  EXPECT(papaya_weak_call(freed, &one, &sum, NULL), MPI_ERR_ARG, "freed");
  EXPECT(papaya_weak_free(&freed), MPI_ERR_ARG, "freed");

  // Different numbers of calls, which nobody must wait for; and a free that others do not come to.
  GOOD(papaya_ssp_allreduce_create(comm, 1, MPI_LONG, MPI_SUM, 2, NULL, &handle));
  GOOD(papaya_weak_call(handle, &one, &sum, NULL));
  if (rank == 0) GOOD(papaya_weak_call(handle, &one, &sum, NULL));
  EXPECT(papaya_weak_free(&handle), MPI_ERR_ARG, "different numbers of calls, 1 to 2");
  GOOD(papaya_ssp_allreduce_create(comm, 1, MPI_LONG, MPI_SUM, 2, NULL, &handle));
  GOOD(papaya_weak_set_limit(handle, 0.05));
  if (rank != 0) EXPECT(papaya_weak_free(&handle), MPI_ERR_PENDING, "have not come");
  MPI_Barrier(comm);
  if (rank == 0) EXPECT(papaya_weak_free(&handle), MPI_ERR_PENDING, "have not come");
}

static int told, told_code;
static void handler(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  ++told;
  told_code = *code;
}

int main(int argc, char** argv) {
  papaya_weak early = PAPAYA_WEAK_NULL;
  const int too_early = papaya_ssp_allreduce_create(MPI_COMM_WORLD, 1, MPI_INT, MPI_SUM, 0, NULL, &early);
  if (too_early == MPI_SUCCESS || strstr(papaya_error(), "not initialised") == NULL) return 3;
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc > 1 && strcmp(argv[1], "fatal") == 0) {
    create(MPI_COMM_WORLD, -1, MPI_INT, MPI_SUM, 0, NULL);
    printf("not reached\n");
    MPI_Finalize();
    return 0;
  }
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  creation(comm);
  use(comm);

  // The program's handler is told, also after the communicator has been freed.
  MPI_Errhandler own;
  MPI_Comm_create_errhandler(handler, &own);
  MPI_Comm_set_errhandler(comm, own);
  create(comm, -1, MPI_INT, MPI_SUM, 0, NULL);
  CHECK(told == 1 && told_code == MPI_ERR_COUNT);
  papaya_weak handle;
  GOOD(papaya_ssp_allreduce_create(comm, 1, MPI_INT, MPI_SUM, 0, NULL, &handle));
  MPI_Errhandler_free(&own);
  MPI_Comm_free(&comm);
  int flag;
  papaya_weak_set_limit(handle, -2);
  CHECK(told == 2 && told_code == MPI_ERR_ARG);
  GOOD(papaya_weak_test(handle, &flag, NULL));
  GOOD(papaya_weak_free(&handle));

  // Of that communicator, not of MPI_COMM_WORLD, also where the collective cannot be freed.
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(handler, &own);
  MPI_Comm_set_errhandler(comm, own);
  told = 0;
  GOOD(papaya_ssp_allreduce_create(comm, 1, MPI_INT, MPI_SUM, 1, NULL, &handle));
  int one = 1, sum;
  for (int i = rank == 0 ? 0 : 1; i < 2; ++i) GOOD(papaya_weak_call(handle, &one, &sum, NULL));
  CHECK(told == 0);
  EXPECT(papaya_weak_free(&handle), MPI_ERR_ARG, "different numbers of calls");
  CHECK(told == 1 && told_code == MPI_ERR_ARG && handle == PAPAYA_WEAK_NULL);
  // It costs no more than the call.
  const double begin_time = MPI_Wtime();
  GOOD(papaya_ssp_allreduce_create(comm, 1, MPI_INT, MPI_SUM, 1, NULL, &handle));
  for (int i = 0; i < 100; ++i) papaya_weak_call(handle, NULL, &sum, NULL);
  CHECK(told == 101 && MPI_Wtime() - begin_time < 10);
  GOOD(papaya_weak_free(&handle));
  MPI_Errhandler_free(&own);
  MPI_Comm_free(&comm);

  // One collective in two threads.
  if (level == MPI_THREAD_MULTIPLE) {
    GOOD(papaya_ssp_allreduce_create(MPI_COMM_SELF, 1, MPI_LONG, MPI_SUM, 0, NULL, &shared));
    pthread_t thread;
    pthread_create(&thread, NULL, use_shared, NULL);
    usleep(20000);
    papaya_weak mine = shared;
    while (papaya_weak_free(&mine) != MPI_SUCCESS) usleep(50);
    void* result;
    pthread_join(thread, &result);
    CHECK(result == NULL);
  }
  return end();
}
