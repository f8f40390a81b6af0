// Programs of sessions, MPI 4 only:
//   sessions all         two sessions, the first ends early; communicators of all ranks and of some
//   sessions part        no communicator of all ranks
//   sessions again       a session after the last one has ended
//   sessions then_init   MPI_Init after the last session has ended
//   sessions around      MPI_Init and MPI_Finalize while a session is open
//   sessions init_first  the same with a session that has communicators of some ranks alone
//   sessions threads     two threads that make communicators of all ranks at once, and call on them
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "mpi4.h"

#if HAS_MPI_4
static int rank, ranks;  // in mpi://WORLD

static void sum_on(MPI_Comm comm, int calls) {
  int mine, size;
  MPI_Comm_rank(comm, &mine);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < calls; ++i) {
    int sum = mine + i;
    CHECK(COUNTED(MPI_Allreduce, MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    CHECK(sum == size * i + size * (size - 1) / 2);
    int root = mine == i % size ? i : -1;
    CHECK(COUNTED(MPI_Bcast, &root, 1, MPI_INT, i % size, comm) == MPI_SUCCESS);
    CHECK(root == i);
  }
  MPI_Request request;
  MPI_Status status;
  int sum = mine;
  CHECK(COUNTED(MPI_Iallreduce, MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm, &request) == MPI_SUCCESS);
  CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS);
  CHECK(sum == size * (size - 1) / 2);
}

static MPI_Session begin(void) {
  MPI_Session session;
  CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
  return session;
}

// Of all ranks, or of those with even or odd numbers.
static MPI_Comm make(MPI_Session session, int part, const char* tag) {
  MPI_Group all, some;
  MPI_Comm comm;
  CHECK(MPI_Group_from_session_pset(session, "mpi://WORLD", &all) == MPI_SUCCESS);
  MPI_Group_rank(all, &rank);
  MPI_Group_size(all, &ranks);
  int range[1][3] = {{rank % 2, ranks - 1, 2}};
  if (part)
    MPI_Group_range_incl(all, 1, range, &some);
  else
    some = all;
  CHECK(MPI_Comm_create_from_group(some, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) == MPI_SUCCESS);
  if (part) MPI_Group_free(&some);
  MPI_Group_free(&all);
  return comm;
}

static void whole_session(int part, const char* tag, int calls) {
  MPI_Session session = begin();
  MPI_Comm comm = make(session, part, tag);
  sum_on(comm, calls);
  MPI_Comm_free(&comm);
  CHECK(MPI_Session_finalize(&session) == MPI_SUCCESS);
}

static void two_sessions(void) {
  MPI_Session first = begin(), second = begin();
  MPI_Comm all = make(first, 0, "all"), other = make(second, 0, "other"), copy, half;
  MPI_Comm_set_name(all, "all");
  MPI_Comm_set_name(other, "other");
  sum_on(all, 40);
  MPI_Comm_dup(all, &copy);
  MPI_Comm_split(all, rank % 2, 0, &half);
  MPI_Comm_set_name(half, rank % 2 == 0 ? "even" : "odd");
  sum_on(copy, 30);
  sum_on(half, 20);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&half);
  MPI_Comm_free(&all);
  CHECK(MPI_Session_finalize(&first) == MPI_SUCCESS);
  sum_on(other, 50);
  MPI_Comm_free(&other);
  CHECK(MPI_Session_finalize(&second) == MPI_SUCCESS);
}

static void world(int calls) {
  CHECK(MPI_Init(NULL, NULL) == MPI_SUCCESS);
  sum_on(MPI_COMM_WORLD, calls);
  CHECK(MPI_Finalize() == MPI_SUCCESS);
}

static void around(void) {
  MPI_Session session = begin();
  MPI_Comm all = make(session, 0, "all");
  MPI_Comm_set_name(all, "all");
  sum_on(all, 20);
  CHECK(MPI_Init(NULL, NULL) == MPI_SUCCESS);
  sum_on(MPI_COMM_WORLD, 30);
  sum_on(all, 10);
  CHECK(MPI_Finalize() == MPI_SUCCESS);
  sum_on(all, 20);
  MPI_Comm_free(&all);
  CHECK(MPI_Session_finalize(&session) == MPI_SUCCESS);
}

static MPI_Session of_threads;
// Which thread comes first differs from rank to rank.
static void* in_thread(void* tag) {
  const struct timespec pause = {0, 20000000};
  if (rank % 2 == (strcmp(tag, "one") == 0)) nanosleep(&pause, NULL);
  MPI_Comm comm = make(of_threads, 0, tag);
  MPI_Comm_set_name(comm, tag);
  for (int i = 0; i < 40; ++i) {
    int sum = rank + i;
    CHECK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    CHECK(sum == ranks * i + ranks * (ranks - 1) / 2);
  }
  MPI_Comm_free(&comm);
  return NULL;
}

static void threads(void) {
  MPI_Info info;
  MPI_Group all;
  MPI_Info_create(&info);
  MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
  CHECK(MPI_Session_init(info, MPI_ERRORS_RETURN, &of_threads) == MPI_SUCCESS);
  MPI_Info_free(&info);
  CHECK(MPI_Group_from_session_pset(of_threads, "mpi://WORLD", &all) == MPI_SUCCESS);
  MPI_Group_rank(all, &rank);
  MPI_Group_size(all, &ranks);
  MPI_Group_free(&all);
  pthread_t one, two;
  pthread_create(&one, NULL, in_thread, "one");
  pthread_create(&two, NULL, in_thread, "two");
  pthread_join(one, NULL);
  pthread_join(two, NULL);
  CHECK(MPI_Session_finalize(&of_threads) == MPI_SUCCESS);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "all") == 0) two_sessions();
  if (strcmp(mode, "part") == 0) whole_session(1, "part", 20);
  if (strcmp(mode, "again") == 0)
    for (int i = 0; i < 3; ++i) whole_session(0, "again", 20);
  if (strcmp(mode, "then_init") == 0) {
    whole_session(0, "before", 20);
    world(30);
  }
  if (strcmp(mode, "around") == 0) around();
  if (strcmp(mode, "threads") == 0) threads();
  if (strcmp(mode, "init_first") == 0) {
    whole_session(1, "before", 20);
    world(30);
  }
  return finish();
}
#else
int main(void) {
  return 0;
}
#endif
