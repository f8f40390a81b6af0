// Programs that begin and end MPI in unusual ways.
//   lifecycle never          asks for the version, never initialises
//   lifecycle before         calls MPI_Allreduce before MPI_Init (MPI ends the job)
//   lifecycle twice          calls MPI_Init twice (the second one fails)
//   lifecycle after          calls MPI_Allreduce after MPI_Finalize (MPI ends the job)
//   lifecycle no_finalize    returns from main without MPI_Finalize
//   lifecycle at_exit        calls MPI_Finalize in an atexit handler
//   lifecycle at_exit_first  the same, registered before MPI_Init: the handlers of libraries loaded later run first
//   lifecycle at_exit_calls  the same with collectives in the handler
//   lifecycle destructor     calls MPI_Finalize in a destructor of the program
//   lifecycle thread         MPI_Init_thread, all calls and MPI_Finalize in a thread that is not main
//   lifecycle processors     each rank on a core of its own, and there after MPI_Finalize, too
//   lifecycle asleep         its ranks wait in MPI_Finalize for the report without taking a core
//   lifecycle umask          lets nobody read the files that it makes
//   lifecycle file_limit       may write no more to files, as of after MPI_Init
//   lifecycle request        waits for a request that there is not, with one that there is
//   lifecycle session        a session and no MPI_Init, MPI 4 only
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"
#include "mpi4.h"

static void some_calls(MPI_Comm comm) {
  int rank, ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  for (int i = 0; i < 100; ++i) {
    int sum = rank + i;
    CHECK(COUNTED(MPI_Allreduce, MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    CHECK(sum == ranks * i + ranks * (ranks - 1) / 2);
  }
}

static void finalize(void) {
  MPI_Finalize();
}

static void finalize_counted(void) {
  MPI_Finalize();
  if (finish() != 0) _exit(1);
}

static void calls_and_finalize(void) {
  MPI_Comm twin;
  CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &twin) == MPI_SUCCESS);
  some_calls(twin);
  some_calls(MPI_COMM_WORLD);
  MPI_Comm_free(&twin);
  finalize_counted();
}

static int ends_in_destructor = 0;
__attribute__((destructor)) static void at_unload(void) {
  if (ends_in_destructor) finalize_counted();
}

static void* whole_life(void* code) {
  int provided;
  CHECK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS);
  some_calls(MPI_COMM_WORLD);
  *(int*)code = finish();
  CHECK(MPI_Finalize() == MPI_SUCCESS);
  return NULL;
}

#if HAS_MPI_4
static int session(void) {
  MPI_Session session;
  CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
  MPI_Group group;
  CHECK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group) == MPI_SUCCESS);
  MPI_Comm comm;
  CHECK(MPI_Comm_create_from_group(group, "test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) == MPI_SUCCESS);
  MPI_Group_free(&group);
  some_calls(comm);
  const int code = finish();
  MPI_Comm_free(&comm);
  CHECK(MPI_Session_finalize(&session) == MPI_SUCCESS);
  return code;
}
#endif

// It returns the error, whoever times it, and what was there can be completed.
static void wait_for_nothing(void) {
  int rank, received = 0, class = 0;
  MPI_Request requests[2];
  MPI_Status statuses[2];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  for (int test = 0; test < 2; ++test) {
    int done = 0;
    MPI_Irecv(&received, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &requests[0]);
    requests[1] = (MPI_Request)0;
    const int code = test ? MPI_Testall(2, requests, &done, statuses) : MPI_Waitall(2, requests, statuses);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_REQUEST);
    MPI_Send(&rank, 1, MPI_INT, rank, 0, MPI_COMM_WORLD);
    CHECK(MPI_Waitall(1, requests, statuses) == MPI_SUCCESS);
    CHECK(received == rank);
  }
}

// That of the whole process: whoever writes the report takes a second longer.
int rename(const char* from, const char* to) {
  static const char report[] = "/report.json";
  const size_t length = strlen(to);
  if (length >= sizeof report && strcmp(to + length + 1 - sizeof report, report) == 0) sleep(1);
  return (int)syscall(SYS_rename, from, to);
}

static double cpu_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  int one = 1, sum = 0;
  if (strcmp(mode, "never") == 0) {
    int version, subversion, initialized, finalized;
    CHECK(MPI_Get_version(&version, &subversion) == MPI_SUCCESS);
    CHECK(MPI_Initialized(&initialized) == MPI_SUCCESS && !initialized);
    CHECK(MPI_Finalized(&finalized) == MPI_SUCCESS && !finalized);
    return finish();
  }
  if (strcmp(mode, "before") == 0) {
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return 0;
  }
  if (strcmp(mode, "thread") == 0) {
    int code = 1;
    pthread_t thread;
    if (pthread_create(&thread, NULL, whole_life, &code) != 0) return 1;
    pthread_join(thread, NULL);
    return failures > 0 ? 1 : code;
  }
#if HAS_MPI_4
  if (strcmp(mode, "session") == 0) return session();
#endif

  const int at_exit_first = strcmp(mode, "at_exit_first") == 0;
  const int at_exit_calls = strcmp(mode, "at_exit_calls") == 0;
  ends_in_destructor = strcmp(mode, "destructor") == 0;
  if (at_exit_first) atexit(finalize_counted);
  if (at_exit_calls) atexit(calls_and_finalize);

  MPI_Init(&argc, &argv);
  some_calls(MPI_COMM_WORLD);
  if (at_exit_first || at_exit_calls || ends_in_destructor) {
    MPI_Comm twin;
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &twin) == MPI_SUCCESS);
    some_calls(twin);
    return 0;
  }
  if (strcmp(mode, "twice") == 0) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    const int second = MPI_Init(&argc, &argv);
    printf("second MPI_Init: %s\n", second == MPI_SUCCESS ? "success" : "error");
    some_calls(MPI_COMM_WORLD);
  }
  if (strcmp(mode, "request") == 0) wait_for_nothing();
  if (strcmp(mode, "umask") == 0) umask(0777);
  if (strcmp(mode, "file_limit") == 0) CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){0, 0}) == 0);
  cpu_set_t own, then;
  if (strcmp(mode, "processors") == 0) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CPU_ZERO(&own);
    CPU_SET(rank % (int)sysconf(_SC_NPROCESSORS_ONLN), &own);
    CHECK(sched_setaffinity(0, sizeof own, &own) == 0);
    MPI_Finalize();
    CHECK(sched_getaffinity(0, sizeof then, &then) == 0 && CPU_EQUAL(&own, &then));
    return finish();
  }
  if (strcmp(mode, "asleep") == 0) {
    const double before = cpu_seconds();
    MPI_Finalize();
    CHECK(cpu_seconds() - before < 0.5);
    return finish();
  }
  const int code = finish();
  if (strcmp(mode, "no_finalize") == 0) return code;
  if (strcmp(mode, "at_exit") == 0) {
    atexit(finalize);
    return code;
  }
  MPI_Finalize();
  if (strcmp(mode, "after") == 0) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return code;
}
