// Weakly consistent collectives as a program calls them: every algorithm of one collective, on several communicators,
// with all counts and kinds of types, blocking and not, in place and not, and left to MPI_Finalize.
//
//   calls few|many|million ALGORITHM...
//
// A million calls, which take a minute, are made by hand.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "papaya.h"

static void stop_now_and_then(int call) {
  if ((call * 7 + rank * 3) % 11 == 0) usleep(500);
}

// Every element is the clock: the least and the largest tell how old contributions are.
static void bounds(MPI_Comm comm, const char* algorithm, int slack, int count, int calls) {
  papaya_weak least, sum;
  int size;
  MPI_Comm_size(comm, &size);
  CHECK(papaya_ssp_allreduce_create(comm, count, MPI_LONG, MPI_MIN, slack, algorithm, &least) == MPI_SUCCESS);
  CHECK(papaya_ssp_allreduce_create(comm, count, MPI_LONG, MPI_SUM, slack, algorithm, &sum) == MPI_SUCCESS);
  long* const mine = malloc((size_t)count * sizeof(long) + 1);
  long* const result = malloc((size_t)count * sizeof(long) + 1);
  for (int call = 1; call <= calls; ++call) {
    stop_now_and_then(call);
    papaya_weak_status status;
    memset(&status, -1, sizeof status);
    for (int i = 0; i < count; ++i) mine[i] = result[i] = call;
    const int in_place = call % 3 == 0;
    if (call % 2 == 0) {
      CHECK(papaya_weak_call(least, in_place ? MPI_IN_PLACE : mine, result, &status) == MPI_SUCCESS);
    } else {
      CHECK(papaya_weak_start(least, in_place ? MPI_IN_PLACE : mine, result) == MPI_SUCCESS);
      int flag = 0;
      if (call % 5 == 0)
        CHECK(papaya_weak_wait(least, -1, &flag, &status) == MPI_SUCCESS && flag == 1);
      else
        while (flag == 0) CHECK(papaya_weak_test(least, &flag, &status) == MPI_SUCCESS);
    }
    CHECK(status.clock == call && status.ranks == size && status.elements == count);
    CHECK(status.oldest >= call - slack && status.oldest >= 1 && status.oldest <= call);
    CHECK(status.own >= status.oldest && status.own <= call);
    CHECK(status.waited >= 0 && status.waited < 60);
    for (int i = 0; i < count; ++i) CHECK(result[i] >= status.oldest && result[i] <= call);
    // All of one clock with slack 0; else others may be ahead by as much.
    CHECK(papaya_weak_call(sum, mine, result, PAPAYA_WEAK_STATUS_IGNORE) == MPI_SUCCESS);
    for (int i = 0; i < count; ++i)
      CHECK(result[i] <= (long)(call + slack) * size && result[i] >= (long)(call - slack) * size &&
            (slack != 0 || result[i] == (long)call * size));
  }
  CHECK(papaya_weak_free(&sum) == MPI_SUCCESS && sum == PAPAYA_WEAK_NULL);
  CHECK(papaya_weak_free(&least) == MPI_SUCCESS);
  free(mine);
  free(result);
}

// A rank that waits here keeps MPI progressing: others sit in long sends to it, and come only then.
static void progress(const char* algorithm) {
  enum { count = 1 << 18 };
  papaya_weak sum;
  CHECK(papaya_ssp_allreduce_create(MPI_COMM_WORLD, 1, MPI_LONG, MPI_SUM, 0, algorithm, &sum) == MPI_SUCCESS);
  int* const message = calloc(count, sizeof(int));
  for (int call = 1; call <= 3; ++call) {
    long one = 1;
    MPI_Request request = MPI_REQUEST_NULL;
    const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    if (rank != ranks - 1) MPI_Irecv(message, count, MPI_INT, next, call, MPI_COMM_WORLD, &request);
    int* const own = calloc(count, sizeof(int));
    if (rank != 0) MPI_Ssend(own, count, MPI_INT, before, call, MPI_COMM_WORLD);
    CHECK(papaya_weak_call(sum, MPI_IN_PLACE, &one, NULL) == MPI_SUCCESS && one == ranks);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(own);
  }
  CHECK(papaya_weak_free(&sum) == MPI_SUCCESS);
  free(message);
}

// Each rank has a digit of its own: how many of its contributions are in the result.
static void totals(MPI_Comm comm, const char* algorithm, int slack, int count, int calls) {
  int size, me;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &me);
  papaya_weak total;
  CHECK(papaya_ssp_accumulate_create(comm, count, MPI_LONG, MPI_SUM, slack, algorithm, &total) == MPI_SUCCESS);
  long* const mine = malloc((size_t)count * sizeof(long) + 1);
  long* const result = malloc((size_t)count * sizeof(long) + 1);
  // After `slack` calls that bring nothing all that has been brought is there.
  for (int call = 1; call <= calls + slack; ++call) {
    stop_now_and_then(call);
    const int brought = call < calls ? call : calls;
    for (int i = 0; i < count; ++i) mine[i] = result[i] = call <= calls ? 1l << 8 * me : 0;
    papaya_weak_status status;
    CHECK(papaya_weak_call(total, call % 3 == 0 ? MPI_IN_PLACE : mine, result, &status) == MPI_SUCCESS);
    CHECK(status.own == call && status.oldest >= call - slack);
    for (int i = 0; i < count; ++i)
      for (int other = 0; other < size; ++other) {
        const int digit = (int)(result[i] >> 8 * other & 255);
        const int oldest = (int)status.oldest;
        const int most = call + slack < calls ? call + slack : calls;
        CHECK(digit <= most && digit >= (oldest < calls ? oldest : calls));
        if (other == me || call == calls + slack) CHECK(digit == brought);
      }
  }
  CHECK(papaya_weak_free(&total) == MPI_SUCCESS);
  free(mine);
  free(result);
}

static int is_across(void) {
  return getenv("PAPAYA_NODE_SIZE") != NULL && strcmp(getenv("PAPAYA_NODE_SIZE"), "1") == 0;
}
static int is_over_ucx(void) {
  const char* const transport = getenv("PAPAYA_TRANSPORT");
  return is_across() && transport != NULL && strcmp(transport, "ucx") == 0;
}

// Of two ranks one is `slack` calls ahead, with long messages, while the other waits for it in MPI.
static void ahead(void) {
  enum { slack = 2, calls = 4 };
  const int count = is_over_ucx() ? 2000000 : 100000;  // more than the system takes for a socket
  MPI_Comm pair;
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
  int me, size, nothing = 0;
  MPI_Comm_rank(pair, &me);
  MPI_Comm_size(pair, &size);
  papaya_weak sum;
  CHECK(papaya_ssp_allreduce_create(pair, count, MPI_LONG, MPI_SUM, slack, "ssp_hypercube", &sum) == MPI_SUCCESS);
  long* const data = calloc((size_t)count, sizeof(long));
  for (int call = 1; call <= calls + slack; ++call) {
    if (call == calls + 1 && me == 1) MPI_Recv(&nothing, 1, MPI_INT, 0, 0, pair, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; ++i) data[i] = call;
    CHECK(papaya_weak_call(sum, MPI_IN_PLACE, data, PAPAYA_WEAK_STATUS_IGNORE) == MPI_SUCCESS);
    for (int i = 1; i < count; ++i) CHECK(data[i] == data[0]);
    if (call == calls + slack && me == 0 && size == 2) MPI_Send(&nothing, 1, MPI_INT, 1, 0, pair);
  }
  CHECK(papaya_weak_free(&sum) == MPI_SUCCESS);
  free(data);
  MPI_Comm_free(&pair);
}

// Each rank counts its calls in an element of its own, and stops at random.
static void million(const char* algorithm) {
  enum { calls = 1000000, slack = 3 };
  papaya_weak total;
  CHECK(papaya_ssp_accumulate_create(MPI_COMM_WORLD, ranks, MPI_LONG, MPI_SUM, slack, algorithm, &total) ==
        MPI_SUCCESS);
  long* const mine = calloc((size_t)ranks, sizeof(long));
  long* const result = calloc((size_t)ranks, sizeof(long));
  unsigned random = (unsigned)rank + 1;
  for (int call = 1; call <= calls + slack; ++call) {
    random = random * 1103515245u + 12345u;
    if ((random >> 16 & 1023) == 0) usleep(random >> 20 & 255);
    mine[rank] = call <= calls;
    papaya_weak_status status;
    CHECK(papaya_weak_call(total, mine, result, &status) == MPI_SUCCESS);
    const long brought = call < calls ? call : calls, oldest = status.oldest < calls ? status.oldest : calls;
    const long most = call + slack < calls ? call + slack : calls;  // ssp_sharded's may be newer
    for (int other = 0; other < ranks; ++other)
      CHECK(result[other] >= (other == rank || call == calls + slack ? brought : oldest) &&
            result[other] <= (other == rank ? brought : most));
    CHECK(status.oldest >= call - slack);
  }
  CHECK(papaya_weak_free(&total) == MPI_SUCCESS);
  free(mine);
  free(result);
}

// Against MPI_Allreduce, in types that are not contiguous, have holes, or are derived.
static void types(MPI_Comm comm, const char* algorithm) {
  int size, me;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &me);
  struct {
    double value;
    int index;
  } pair[5], expected[5];
  papaya_weak maxloc;
  CHECK(papaya_ssp_allreduce_create(comm, 5, MPI_DOUBLE_INT, MPI_MAXLOC, 0, algorithm, &maxloc) == MPI_SUCCESS);
  for (int call = 1; call <= 20; ++call) {
    memset(pair, call, sizeof pair);
    memset(expected, call, sizeof expected);
    for (int i = 0; i < 5; ++i) {
      pair[i].value = (me * 5 + call * (i + 1)) % 7;
      pair[i].index = me;
    }
    MPI_Allreduce(pair, expected, 5, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
    CHECK(papaya_weak_call(maxloc, MPI_IN_PLACE, pair, NULL) == MPI_SUCCESS);
    for (int i = 0; i < 5; ++i) CHECK(pair[i].value == expected[i].value && pair[i].index == expected[i].index);
  }
  CHECK(papaya_weak_free(&maxloc) == MPI_SUCCESS);
}

static void add_columns(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i)
    for (int row = 0; row < 3; ++row) ((int*)inout)[i * 7 + 2 * row] += ((int*)in)[i * 7 + 2 * row];
}

static void derived(MPI_Comm comm, const char* algorithm) {
  enum { elements = 4, span = 7 * elements };
  int size, me;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &me);
  MPI_Datatype column, spaced;
  MPI_Type_vector(3, 1, 2, MPI_INT, &column);
  MPI_Type_create_resized(column, 0, 7 * sizeof(int), &spaced);
  MPI_Type_commit(&spaced);
  MPI_Op add;
  MPI_Op_create(add_columns, 1, &add);
  papaya_weak sum;
  CHECK(papaya_ssp_allreduce_create(comm, elements, spaced, add, 0, algorithm, &sum) == MPI_SUCCESS);
  MPI_Type_free(&column);
  MPI_Type_free(&spaced);
  for (int call = 1; call <= 10; ++call) {
    int mine[span], result[span];
    for (int i = 0; i < span; ++i) {
      mine[i] = me + call + i;
      result[i] = -5;
    }
    CHECK(papaya_weak_call(sum, mine, result, NULL) == MPI_SUCCESS);
    for (int i = 0; i < span; ++i) {
      const int is_in_type = i % 7 % 2 == 0 && i % 7 < 5;
      CHECK(result[i] == (is_in_type ? size * (call + i) + size * (size - 1) / 2 : -5));
    }
  }
  CHECK(papaya_weak_free(&sum) == MPI_SUCCESS);
  MPI_Op_free(&add);
}

// What holds, also where something else was asked for.
static void info(void) {
  const char* const place = !is_across() ? " over shared memory" : is_over_ucx() ? " over UCX" : " over MPI's messages";
  MPI_Op own;
  MPI_Op_create(add_columns, 1, &own);
  int level;
  MPI_Query_thread(&level);
  for (int asked = 0; asked < 3; ++asked) {
    const int is_threaded = asked == 1 && !is_over_ucx() && (!is_across() || level == MPI_THREAD_MULTIPLE);
    char text[256], expected[256], cut[8];
    papaya_weak sum;
    CHECK(papaya_ssp_allreduce_create(MPI_COMM_WORLD, 1, MPI_INT, asked == 2 ? own : MPI_SUM, 3,
                                      asked == 0 ? "ssp_sharded" : "ssp_sharded:thread=1,consistent=1",
                                      &sum) == MPI_SUCCESS);
    CHECK(papaya_weak_get_info(sum, text, sizeof text) == MPI_SUCCESS);
    snprintf(expected, sizeof expected, "ssp_sharded:slack=3,consistent=%d,thread=%d,shard_bytes=4096%s", asked != 0,
             is_threaded, place);
    CHECK(strcmp(text, expected) == 0);
    if (strcmp(text, expected) != 0) printf("'%s' instead of '%s'\n", text, expected);
    CHECK(papaya_weak_get_info(sum, cut, sizeof cut) == MPI_SUCCESS && strcmp(cut, "ssp_sha") == 0);
    CHECK(papaya_weak_free(&sum) == MPI_SUCCESS);
  }
  MPI_Op_free(&own);
  // papaya's choice.
  for (int slack = 0; slack < 2; ++slack)
    for (int count = 2047; count < 2049; ++count) {
      char text[256];
      papaya_weak sum;
      CHECK(papaya_ssp_accumulate_create(MPI_COMM_WORLD, count, MPI_DOUBLE, MPI_SUM, slack, NULL, &sum) == MPI_SUCCESS);
      CHECK(papaya_weak_get_info(sum, text, sizeof text) == MPI_SUCCESS);
      CHECK((strstr(text, "ssp_sharded:") == text) == (slack == 1 && count == 2048));
      CHECK(papaya_weak_free(&sum) == MPI_SUCCESS);
    }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  for (int a = 2; a < argc && strcmp(argv[1], "million") == 0; ++a) {
    million(argv[a]);
    if (a + 1 == argc) return end();
  }
  if (is_over_ucx()) setenv("UCX_TLS", "tcp,self", 1);  // not for MPICH's own UCX, which hangs in MPI_Finalize then
  derived(MPI_COMM_WORLD, "ssp_hypercube");             // the first of the process
  ahead();
  info();
  const int many = argc > 1 && strcmp(argv[1], "many") == 0;
  MPI_Comm half, backwards;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &backwards);
  const int counts[] = {3000, 0, 1, ranks - 1, ranks, ranks + 1};
  for (int a = 2; a < argc; ++a) {
    if (many)
      for (int slack = 0; slack <= 2; ++slack)
        for (size_t i = 1; i < sizeof counts / sizeof *counts; ++i)
          bounds(i % 2 == 0 ? MPI_COMM_WORLD : half, argv[a], slack, counts[i], 12);
    for (int slack = 0; slack <= 2; ++slack) bounds(backwards, argv[a], slack, counts[slack], 30);
    for (int slack = 0; slack <= 3; ++slack) totals(MPI_COMM_WORLD, argv[a], slack, slack == 2 ? 5000 : 7, 40);
    progress(argv[a]);
    bounds(half, argv[a], 1, 100000, 6);
    bounds(MPI_COMM_SELF, argv[a], 1, 10, 5);
    types(backwards, argv[a]);
    derived(half, argv[a]);
    if (failures != 0) printf("rank %d: %d failures with %s\n", rank, failures, argv[a]);
  }
  // Not freed: MPI_Finalize does.
  papaya_weak left;
  long one = 1;
  CHECK(papaya_ssp_allreduce_create(half, 1, MPI_LONG, MPI_SUM, 0, NULL, &left) == MPI_SUCCESS);
  CHECK(papaya_weak_call(left, MPI_IN_PLACE, &one, NULL) == MPI_SUCCESS);
  MPI_Comm_free(&half);
  MPI_Comm_free(&backwards);
  return end();
}
