// Rank 2 waits for a message of rank 1, which is late, in each of MPI's ways; that of rank 0 is there early. Each way
// is one interval before an allreduce; their names are on standard output: [ROUNDS [multiple]].
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mpi4.h"

// In Open MPI 5.0.7 the receiver waits for ever.
#if HAS_MPI_4 && !defined(OPEN_MPI)
#define HAS_PARTITIONED 1
#else
#define HAS_PARTITIONED 0
#endif

enum { early, late, receiver };

static MPI_Comm comm, freed, reused;
static int is_multiple;
static int word[2];
static MPI_Status statuses[3];

static int of(int rank) {
  return 2 - rank;  // in `comm`
}

static void sleep_ms(int ms) {
  nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

static void both(MPI_Request* requests) {
  for (int i = 0; i < 2; ++i) MPI_Irecv(&word[i], 1, MPI_INT, of(i), 0, comm, &requests[i]);
}

static void waitall(void) {
  MPI_Request requests[2];
  both(requests);
  MPI_Waitall(2, requests, statuses);
}
static void waitall_any_source(void) {
  MPI_Request request;
  MPI_Recv(&word[0], 1, MPI_INT, of(early), 0, comm, MPI_STATUS_IGNORE);
  MPI_Irecv(&word[1], 1, MPI_INT, MPI_ANY_SOURCE, 0, comm, &request);
  MPI_Waitall(1, &request, statuses);
}
static void waitany(void) {
  MPI_Request requests[2];
  int index;
  both(requests);
  for (int i = 0; i < 2; ++i) MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
}
static void waitsome(void) {
  MPI_Request requests[2];
  int count, indices[2];
  both(requests);
  for (int done = 0; done < 2; done += count) MPI_Waitsome(2, requests, &count, indices, statuses);
}
static void test(void) {
  MPI_Request requests[2];
  both(requests);
  for (int i = 0; i < 2; ++i)
    for (int flag = 0; !flag;) MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
}
static void testany(void) {
  MPI_Request requests[2];
  int index;
  both(requests);
  for (int i = 0; i < 2; ++i)
    for (int flag = 0; !flag;) MPI_Testany(2, requests, &index, &flag, MPI_STATUS_IGNORE);
}
static void testsome(void) {
  MPI_Request requests[2];
  int count, indices[2];
  both(requests);
  for (int done = 0; done < 2; done += count) MPI_Testsome(2, requests, &count, indices, statuses);
}
static void testall(void) {
  MPI_Request requests[2];
  both(requests);
  MPI_Wait(&requests[early], MPI_STATUS_IGNORE);
  for (int flag = 0; !flag;) MPI_Testall(2, requests, &flag, statuses);
}
static void persistent(void) {
  MPI_Request requests[2];
  for (int i = 0; i < 2; ++i) MPI_Recv_init(&word[i], 1, MPI_INT, of(i), 0, comm, &requests[i]);
  for (int i = 0; i < 2; ++i) {
    MPI_Start(&requests[i]);
    MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < 2; ++i) MPI_Request_free(&requests[i]);
}
static void startall(void) {
  MPI_Request requests[2];
  for (int i = 0; i < 2; ++i) MPI_Recv_init(&word[i], 1, MPI_INT, of(i), 0, comm, &requests[i]);
  MPI_Startall(2, requests);
  MPI_Waitall(2, requests, statuses);
  for (int i = 0; i < 2; ++i) MPI_Request_free(&requests[i]);
}
static void mprobe(void) {
  for (int i = 0; i < 2; ++i) {
    MPI_Message message;
    MPI_Mprobe(of(i), 0, comm, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(&word[i], 1, MPI_INT, &message, MPI_STATUS_IGNORE);
  }
}
static void improbe(void) {
  for (int i = 0; i < 2; ++i) {
    MPI_Message message;
    MPI_Request request;
    for (int flag = 0; !flag;) MPI_Improbe(of(i), 0, comm, &flag, &message, &statuses[i]);
    MPI_Imrecv(&word[i], 1, MPI_INT, &message, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}
static void iprobe(void) {
  for (int i = 0; i < 2; ++i) {
    MPI_Status status;
    for (int flag = 0; !flag;) MPI_Iprobe(MPI_ANY_SOURCE, 0, comm, &flag, &status);
    MPI_Recv(&word[i], 1, MPI_INT, status.MPI_SOURCE, 0, comm, MPI_STATUS_IGNORE);
  }
}
// The communicator's handle has no meaning any more when the wait ends, so that nobody is known: it is freed before, or
// by another thread meanwhile, for which `late` waits. Its sides free it alike.
static void* free_soon(void* unused) {
  sleep_ms(1);
  MPI_Comm_free(&freed);
  MPI_Send(&is_multiple, 1, MPI_INT, of(late), 0, comm);
  return unused;
}
static void on_freed(void) {
  pthread_t thread;
  MPI_Request requests[2];
  for (int i = 0; i < 2; ++i) MPI_Irecv(&word[i], 1, MPI_INT, of(i), 0, freed, &requests[i]);
  if (!is_multiple)
    MPI_Comm_free(&freed);
  else if (pthread_create(&thread, NULL, free_soon, NULL) != 0)
    MPI_Abort(MPI_COMM_WORLD, 1);
  for (int i = 1; i >= 0; --i) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  if (is_multiple) pthread_join(thread, NULL);
}
// The first of a communicator is known to be `early`. It is freed while recording is off, and its handle may be the
// next one's, where `late` is first.
static void make_reused(int rank) {
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &reused);
  if (rank == early) {
    sleep_ms(1);
    MPI_Send(&rank, 1, MPI_INT, receiver, 0, reused);
  }
  if (rank == receiver) MPI_Recv(&word[0], 1, MPI_INT, 0, 0, reused, MPI_STATUS_IGNORE);
  MPI_Pcontrol(0);
  MPI_Comm_free(&reused);
  MPI_Pcontrol(1);
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank == late ? 0 : 1 + rank, &reused);
}
static void on_reused(void) {
  MPI_Recv(&word[early], 1, MPI_INT, of(early), 0, comm, MPI_STATUS_IGNORE);
  MPI_Recv(&word[late], 1, MPI_INT, 0, 0, reused, MPI_STATUS_IGNORE);
}
// A request is for `early`, and while recording is off its handle becomes one for `late`.
static void on_switched(void) {
  MPI_Request request;
  MPI_Irecv(&word[early], 1, MPI_INT, of(early), 0, comm, &request);
  MPI_Pcontrol(0);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Irecv(&word[late], 1, MPI_INT, of(late), 0, comm, &request);
  MPI_Pcontrol(1);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}
// MPI_Waitall asks once for the status of what is no message; papaya does not.
static int query(void* queries, MPI_Status* status) {
  ++*(int*)queries;
  MPI_Status_set_cancelled(status, 0);
  return MPI_Status_set_elements(status, MPI_INT, 0);
}
static int nothing(void* unused) {
  (void)unused;
  return MPI_SUCCESS;
}
static int not_cancelled(void* unused, int is_complete) {
  (void)is_complete;
  return nothing(unused);
}
static void generalized(void) {
  MPI_Request requests[3];
  int queries = 0;
  both(requests);
  MPI_Grequest_start(query, nothing, not_cancelled, &queries, &requests[2]);
  MPI_Grequest_complete(requests[2]);
  MPI_Waitall(3, requests, statuses);
  if (queries == 1) return;
  fprintf(stderr, "%d queries\n", queries);
  MPI_Abort(MPI_COMM_WORLD, 1);
}
#if HAS_PARTITIONED
static void partitioned(void) {
  MPI_Request request;
  MPI_Recv(&word[0], 1, MPI_INT, of(early), 0, comm, MPI_STATUS_IGNORE);
  MPI_Precv_init(&word[1], 1, 1, MPI_INT, of(late), 0, comm, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  for (int flag = 0; !flag;) MPI_Parrived(request, 0, &flag);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
}
static void send_partitioned(void) {
  int one = 1;
  MPI_Request request;
  MPI_Psend_init(&one, 1, 1, MPI_INT, of(receiver), 0, comm, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  MPI_Pready(0, request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
}
#endif

static const struct {
  const char* name;
  void (*wait)(void);
} ways[] = {{"Waitall", waitall},
            {"Waitall_any_source", waitall_any_source},
            {"Waitany", waitany},
            {"Waitsome", waitsome},
            {"Test", test},
            {"Testany", testany},
            {"Testsome", testsome},
            {"Testall", testall},
            {"persistent", persistent},
            {"Startall", startall},
            {"Mprobe", mprobe},
            {"Improbe", improbe},
            {"Iprobe", iprobe},
#if HAS_PARTITIONED
            {"partitioned", partitioned},
#endif
            {"generalized", generalized},
            {"reused", on_reused},
            {"switched", on_switched},
            {"freed", on_freed}};
enum { count = sizeof ways / sizeof ways[0] };

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 4;
  int provided, rank, sum;
  is_multiple = argc > 2;
  MPI_Init_thread(&argc, &argv, is_multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, 0, 2 - rank, &comm);
  if (rank == 0)
    for (int i = 0; i < count; ++i) printf("%s%c", ways[i].name, i + 1 < count ? ' ' : '\n');
  for (int i = 0; i < rounds * count; ++i) {
    const int is_on_freed = ways[i % count].wait == on_freed;
    if (is_on_freed) MPI_Comm_dup(comm, &freed);
    const int is_on_reused = ways[i % count].wait == on_reused;
    if (is_on_reused) make_reused(rank);
    if (rank == late) sleep_ms(3);
    if (rank == late && is_on_freed && is_multiple)
      MPI_Recv(&word[0], 1, MPI_INT, of(receiver), 0, comm, MPI_STATUS_IGNORE);
    if (rank == receiver) {
      ways[i % count].wait();
#if HAS_PARTITIONED
    } else if (rank == late && ways[i % count].wait == partitioned) {
      send_partitioned();
#endif
    } else if (rank == late && is_on_reused) {
      MPI_Send(&i, 1, MPI_INT, receiver, 0, reused);
    } else {
      MPI_Send(&i, 1, MPI_INT, of(receiver), 0, is_on_freed ? freed : comm);
      if (is_on_freed) MPI_Comm_free(&freed);
    }
    if (is_on_reused) MPI_Comm_free(&reused);
    MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
