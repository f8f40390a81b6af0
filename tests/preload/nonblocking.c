// MPI_Iallreduce, Ibcast and Ibarrier in the ways that programs use them. What a rank waits in while another needs it
// to move an operation on: every blocking call in turn.
//   nonblocking results    test and wait of every kind, several at once, in place, derived types, freed communicators
//   nonblocking waits      a rank inside each blocking call, whose partner comes only after the operation
//   nonblocking leaves     who has waited for its operation never calls MPI again until the others have got theirs
//   nonblocking threads    the same under MPI_THREAD_MULTIPLE: the operation is started by another thread meanwhile
//   nonblocking local      the others turn to MPI only once a rank has returned from the start, and from MPI_Test
//   nonblocking early      the same of the root of a blocking MPI_Bcast and of who is not the root of MPI_Reduce
//   nonblocking exact      calls of MPI's own whose nonblocking forms have faults
// Several may be named.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"

enum { longest = 40000 };

static int rank, ranks;
static MPI_Status statuses[16];

static void pause_ms(long ms) {
  const struct timespec duration = {0, ms * 1000000};
  nanosleep(&duration, NULL);
}

static int operand(int of, int i, int call) {
  return of * 1000 + i * 7 + call;
}

static long long sum_at(int members, int i, int call) {
  long long sum = 0;
  for (int r = 0; r < members; ++r) sum += operand(r, i, call);
  return sum;
}

// One outstanding call of each kind, on one communicator.
struct call {
  int number, count, root;
  int* in;
  int* out;
};

static struct call* new_call(int number, int count) {
  struct call* call = malloc(sizeof *call);
  *call = (struct call){number, count, number % ranks, malloc(sizeof(int) * (size_t)(count + 1)),
                        malloc(sizeof(int) * (size_t)(count + 1))};
  for (int i = 0; i < count; ++i) call->in[i] = operand(rank, i, number);
  call->in[count] = call->out[count] = -77;
  return call;
}
static void check_allreduce(struct call* call) {
  int wrong = 0;
  for (int i = 0; i < call->count; ++i) wrong += call->out[i] != (int)sum_at(ranks, i, call->number);
  CHECK(wrong == 0);
  CHECK(call->out[call->count] == -77);
}
static void check_bcast(struct call* call) {
  int wrong = 0;
  for (int i = 0; i < call->count; ++i) wrong += call->in[i] != operand(call->root, i, call->number);
  CHECK(wrong == 0);
  CHECK(call->in[call->count] == -77);
}
static void end_call(struct call* call) {
  free(call->in);
  free(call->out);
  free(call);
}
static void iallreduce(struct call* call, MPI_Comm comm, MPI_Request* request) {
  CHECK(COUNTED(MPI_Iallreduce, call->in, call->out, call->count, MPI_INT, MPI_SUM, comm, request) == MPI_SUCCESS);
}
static void ibcast(struct call* call, MPI_Comm comm, MPI_Request* request) {
  CHECK(COUNTED(MPI_Ibcast, call->in, call->count, MPI_INT, call->root, comm, request) == MPI_SUCCESS);
}
static void ibarrier(MPI_Comm comm, MPI_Request* request) {
  CHECK(COUNTED(MPI_Ibarrier, comm, request) == MPI_SUCCESS);
}

static volatile double sink;
static void compute(void) {
  for (int i = 0; i < 20000; ++i) sink += i;
}

static const int counts[] = {1, 700, 5000, longest};

static void by_test(MPI_Comm comm) {
  for (int n = 0; n < 12; ++n) {
    struct call* const reduce = new_call(n, counts[n % 4]);
    struct call* const cast = new_call(n + 100, counts[(n + 1) % 4]);
    MPI_Request request;
    int done = 0;
    if (n % 3 == rank % 3) compute();
    iallreduce(reduce, comm, &request);
    while (!done) {
      compute();
      CHECK(MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    }
    CHECK(request == MPI_REQUEST_NULL);
    check_allreduce(reduce);
    ibcast(cast, comm, &request);
    for (done = 0; !done; compute()) MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
    CHECK(request != MPI_REQUEST_NULL);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    check_bcast(cast);
    ibarrier(comm, &request);
    MPI_Status status;
    CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS);
    int cancelled = 1;
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(!cancelled);
    end_call(reduce);
    end_call(cast);
  }
}

// Many at once, completed in another order than they were started in, beside messages.
static void several(MPI_Comm comm) {
  enum { many = 12 };
  for (int way = 0; way < 4; ++way) {
    struct call* calls[many];
    MPI_Request requests[many + 2];
    int message = rank, received = -1;
    for (int n = 0; n < many; ++n) {
      calls[n] = new_call(way * many + n, counts[n % 3]);
      if (n % 3 == 0)
        iallreduce(calls[n], comm, &requests[n]);
      else if (n % 3 == 1)
        ibcast(calls[n], comm, &requests[n]);
      else
        ibarrier(comm, &requests[n]);
    }
    MPI_Irecv(&received, 1, MPI_INT, (rank + ranks - 1) % ranks, way, comm, &requests[many]);
    MPI_Isend(&message, 1, MPI_INT, (rank + 1) % ranks, way, comm, &requests[many + 1]);
    if (way == 0) {
      CHECK(MPI_Waitall(many + 2, requests, statuses) == MPI_SUCCESS);
    } else if (way == 1) {
      int left = 0;
      for (int index = 0; index != MPI_UNDEFINED; ++left)
        CHECK(MPI_Waitany(many + 2, requests, &index, MPI_STATUS_IGNORE) == MPI_SUCCESS);
      CHECK(left == many + 3);
    } else if (way == 2) {
      int all = 0, some = 0, indices[many + 2];
      while (some != MPI_UNDEFINED) {
        all += some;
        CHECK(MPI_Waitsome(many + 2, requests, &some, indices, statuses) == MPI_SUCCESS);
      }
      CHECK(all == many + 2);
    } else {
      for (int n = many + 1; n >= 0; --n) CHECK(MPI_Wait(&requests[n], MPI_STATUS_IGNORE) == MPI_SUCCESS);
    }
    CHECK(received == (rank + ranks - 1) % ranks);
    for (int n = 0; n < many; ++n) {
      if (n % 3 == 0) check_allreduce(calls[n]);
      if (n % 3 == 1) check_bcast(calls[n]);
      end_call(calls[n]);
    }
  }
  for (int way = 0; way < 3; ++way) {
    MPI_Request requests[3];
    int flag = 0, some = 0, all = 0, indices[3], index;
    for (int n = 0; n < 3; ++n) ibarrier(comm, &requests[n]);
    while (all < 3) {
      if (way == 0) {
        MPI_Testall(3, requests, &flag, statuses);
        if (flag) all = 3;
      } else if (way == 1) {
        MPI_Testany(3, requests, &index, &flag, MPI_STATUS_IGNORE);
        if (flag) ++all;
      } else {
        MPI_Testsome(3, requests, &some, indices, statuses);
        all += some;
      }
    }
  }
}

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

static void shapes(MPI_Comm comm) {
  MPI_Request request;
  // In place.
  struct call* call = new_call(7, 900);
  CHECK(COUNTED(MPI_Iallreduce, MPI_IN_PLACE, call->in, call->count, MPI_INT, MPI_SUM, comm, &request) == MPI_SUCCESS);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < call->count; ++i) call->out[i] = call->in[i];
  check_allreduce(call);
  end_call(call);
  // Pairs with padding, whose content is the program's.
  struct {
    double value;
    int index;
    int padding;
  } pair = {rank, rank, 4711 + rank}, least = {0, 0, 17};
  CHECK(COUNTED(MPI_Iallreduce, &pair, &least, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm, &request) == MPI_SUCCESS);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(least.value == ranks - 1 && least.index == ranks - 1 && least.padding == 17);
  // Every second element, of a type that is freed before the end; another rank passes as many plain ones.
  call = new_call(9, 2000);
  for (int i = 0; i < call->count; ++i) call->in[i] = rank == call->root ? i : -1;
  if (rank % 2 == 0) {
    MPI_Datatype halves;
    MPI_Type_vector(1000, 1, 2, MPI_INT, &halves);
    MPI_Type_commit(&halves);
    CHECK(COUNTED(MPI_Ibcast, call->in, 1, halves, call->root, comm, &request) == MPI_SUCCESS);
    MPI_Type_free(&halves);
  } else {
    CHECK(COUNTED(MPI_Ibcast, call->in, 1000, MPI_INT, call->root, comm, &request) == MPI_SUCCESS);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  int wrong = 0;
  const int from_step = call->root % 2 == 0 ? 2 : 1, to_step = rank % 2 == 0 ? 2 : 1;
  for (int i = 0; i < 1000; ++i) wrong += call->in[i * to_step] != i * from_step;
  for (int i = 0; i < 1000 && rank % 2 == 0 && rank != call->root; ++i) wrong += call->in[2 * i + 1] != -1;
  CHECK(wrong == 0);
  end_call(call);
  // An operation of the user's, and no data.
  MPI_Op op;
  MPI_Op_create(add, 1, &op);
  call = new_call(11, 50);
  CHECK(COUNTED(MPI_Iallreduce, call->in, call->out, call->count, MPI_INT, op, comm, &request) == MPI_SUCCESS);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check_allreduce(call);
  CHECK(COUNTED(MPI_Iallreduce, call->in, call->out, 0, MPI_INT, MPI_SUM, comm, &request) == MPI_SUCCESS);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Op_free(&op);
  end_call(call);
}

// Open MPI 5.0.7 may crash where a communicator is freed while a nonblocking collective of its own is under way.
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5
enum { keeps_freed = 0 };
#else
enum { keeps_freed = 1 };
#endif

// A communicator is freed while something is under way on it; others beside it, in another order on each rank.
static void communicators(void) {
  MPI_Comm one, two;
  MPI_Comm_dup(MPI_COMM_WORLD, &one);
  MPI_Comm_split(MPI_COMM_WORLD, 0, ranks - rank, &two);
  for (int n = 0; n < 5; ++n) {
    struct call* const a = new_call(n, 300);
    struct call* const b = new_call(n + 1, 300);
    int mine = rank + n, sum[2] = {0, 0};
    MPI_Request requests[3];
    if (rank % 2 == 0) iallreduce(a, one, &requests[0]);
    CHECK(COUNTED(MPI_Iallreduce, &mine, sum, 1, MPI_INT, MPI_SUM, two, &requests[1]) == MPI_SUCCESS);
    if (rank % 2 == 1) iallreduce(a, one, &requests[0]);
    ibcast(b, one, &requests[2]);
    CHECK(COUNTED(MPI_Allreduce, &mine, sum + 1, 1, MPI_INT, MPI_SUM, two) == MPI_SUCCESS);
    if (n == 4 && rank % 2 == 0) pause_ms(2);
    if (n == 4 && keeps_freed) MPI_Comm_free(&one);
    MPI_Waitall(3, requests, statuses);
    if (n == 4 && !keeps_freed) MPI_Comm_free(&one);
    if (n == 4) MPI_Comm_disconnect(&two);  // not before: MPICH waits there until the requests are gone
    check_allreduce(a);
    check_bcast(b);
    CHECK(sum[0] == sum[1] && sum[0] == ranks * (ranks - 1) / 2 + ranks * n);
    end_call(a);
    end_call(b);
  }
}

// Rank 0 is inside a blocking call whose partner, rank 1, comes to it only when the operation has ended on it, for
// which rank 0 is needed. FENCE is a call that papaya does not see.
enum way {
  RECEIVE,
  SYNCHRONOUS,
  PROBE,
  MPROBE,
  SENDRECV,
  REPLACE,
  WAIT,
  POLL,
  BCAST,
  GATHER,
  BARRIER,
  ALLREDUCE,
  SPLIT,
  FENCE,
  ways
};
static MPI_Win fenced;

static void block_in(int way, int tag) {
  enum { larger = 512 };  // 2 KiB: a selection may leave it to MPI and take smaller ones
  const int other = 1 - rank;
  int data[larger] = {rank, -1}, flag = 0;
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Message message;
  MPI_Request request;
  MPI_Comm pair = MPI_COMM_WORLD;
  if (way >= BCAST) {
    if (way == BCAST) {
      CHECK(COUNTED(MPI_Bcast, data, larger, MPI_INT, 1, pair) == MPI_SUCCESS);
      CHECK(data[0] == 1);
    } else if (way == GATHER) {
      int* const all = malloc(sizeof(int) * (size_t)ranks);
      CHECK(COUNTED(MPI_Gather, data, 1, MPI_INT, all, 1, MPI_INT, 0, pair) == MPI_SUCCESS);
      CHECK(rank != 0 || all[1] == 1);
      free(all);
    } else if (way == BARRIER) {
      COUNTED(MPI_Barrier, pair);
    } else if (way == ALLREDUCE) {
      CHECK(COUNTED(MPI_Allreduce, data, data + 1, 1, MPI_INT, MPI_SUM, pair) == MPI_SUCCESS);
      CHECK(data[1] == ranks * (ranks - 1) / 2);
    } else if (way == SPLIT) {
      MPI_Comm_split(pair, 0, rank, &part);
      MPI_Comm_free(&part);
    } else {
      MPI_Win_fence(0, fenced);
    }
    return;
  }
  if (rank > 1) return;
  if (way == SENDRECV || way == REPLACE) {
    MPI_Status status;
    if (way == SENDRECV)
      MPI_Sendrecv(data, 1, MPI_INT, other, tag, data + 1, 1, MPI_INT, other, tag, MPI_COMM_WORLD, &status);
    else
      MPI_Sendrecv_replace(data, 1, MPI_INT, other, tag, other, tag, MPI_COMM_WORLD, &status);
    CHECK(data[way == SENDRECV] == other && status.MPI_SOURCE == other);
    return;
  }
  if (rank == 1) {
    if (way == SYNCHRONOUS)
      MPI_Recv(data, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
      MPI_Send(data, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
    return;
  }
  MPI_Status status = {0};
  switch (way) {
    case SYNCHRONOUS:
      MPI_Ssend(data, 1, MPI_INT, 1, tag, MPI_COMM_WORLD);
      return;
    case PROBE:
      MPI_Probe(1, tag, MPI_COMM_WORLD, &status);
      CHECK(status.MPI_TAG == tag);
      break;
    case MPROBE:
      MPI_Mprobe(1, tag, MPI_COMM_WORLD, &message, &status);
      MPI_Mrecv(data, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
      CHECK(data[0] == 1);
      return;
    case WAIT:
      MPI_Irecv(data, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      CHECK(data[0] == 1);
      return;
    case POLL:
      while (!flag) MPI_Iprobe(1, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
      break;
    default:
      break;
  }
  MPI_Recv(data, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, &status);
  CHECK(data[0] == 1 && status.MPI_SOURCE == 1 && status.MPI_TAG == tag);
}

static void waits(MPI_Comm comm) {
  MPI_Comm other;
  int memory = 0;
  MPI_Comm_dup(comm, &other);
  MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, comm, &fenced);
  for (int way = 0; way < ways; ++way)
    for (int repeat = 0; repeat < 2; ++repeat) {
      // Of many segments: it takes every rank again and again.
      struct call* const call = new_call(way, longest);
      MPI_Request request;
      if (repeat == 0 && rank == 0) pause_ms(2);
      iallreduce(call, comm, &request);
      if (repeat == 1 && rank == 0) pause_ms(2);
      if (rank != 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
      block_in(way, way);
      if (rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
      check_allreduce(call);
      end_call(call);
    }
  // In opposite orders on two communicators.
  for (int n = 0; n < 10; ++n) {
    struct call* const call = new_call(n, counts[n % 4]);
    MPI_Request request;
    if (rank == 0) iallreduce(call, comm, &request);
    COUNTED(MPI_Barrier, other);
    if (rank != 0) iallreduce(call, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_allreduce(call);
    end_call(call);
  }
  MPI_Win_free(&fenced);
  MPI_Comm_free(&other);
}

// Rank 0's main thread is inside a blocking call when another starts the operation, and then does nothing for it until
// it has ended.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int stage;
static MPI_Comm of_thread;

static void reach(int next) {
  pthread_mutex_lock(&mutex);
  stage = next;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}
static void wait_stage(int wanted) {
  pthread_mutex_lock(&mutex);
  while (stage < wanted) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

static void* starter(void* unused) {
  (void)unused;
  for (int n = 0; n < 6; ++n) {
    struct call* const call = new_call(n, longest);
    MPI_Request request;
    wait_stage(2 * n + 1);
    pause_ms(3);  // the main thread is inside by then
    iallreduce(call, of_thread, &request);
    wait_stage(2 * n + 2);  // out of MPI_Recv, which took the end of the operation on rank 1
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_allreduce(call);
    end_call(call);
  }
  return NULL;
}

static void threads(MPI_Comm comm) {
  MPI_Comm_dup(comm, &of_thread);
  if (rank == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, starter, NULL);
    for (int n = 0; n < 6; ++n) {
      int data = 0;
      reach(2 * n + 1);
      MPI_Recv(&data, 1, MPI_INT, 1, n, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(data == n);
      reach(2 * n + 2);
    }
    pthread_join(thread, NULL);
  } else {
    for (int n = 0; n < 6; ++n) {
      struct call* const call = new_call(n, longest);
      MPI_Request request;
      iallreduce(call, of_thread, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      check_allreduce(call);
      end_call(call);
      if (rank == 1) MPI_Send(&n, 1, MPI_INT, 0, n, MPI_COMM_WORLD);
    }
  }
  MPI_Comm_free(&of_thread);
}

// A blocking collective of MPI's while papaya may have operations outstanding. Open MPI's nonblocking form of this one
// is wrong for large blocks, MPICH's blocking one hangs.
static void in_place(MPI_Comm comm) {
#if defined(OPEN_MPI)
  for (int scale = 1; scale < 20000; scale = scale * 5 + 1) {
    int counts[64], places[64], all = 0, wrong = 0;
    for (int i = 0; i < ranks; ++i) {
      counts[i] = (rank + i) % 3 * scale;
      places[i] = all;
      all += counts[i];
    }
    int* blocks = malloc(sizeof(int) * (size_t)(all + 1));
    for (int i = 0; i < ranks; ++i)
      for (int k = 0; k < counts[i]; ++k) blocks[places[i] + k] = operand(rank, i, k);
    struct call* call = new_call(scale, 100);
    MPI_Request request;
    COUNTED(MPI_Iallreduce, call->in, call->out, call->count, MPI_INT, MPI_SUM, comm, &request);
    COUNTED(MPI_Alltoallv, MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, blocks, counts, places, MPI_INT, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < ranks; ++i)
      for (int k = 0; k < counts[i]; ++k) wrong += blocks[places[i] + k] != operand(i, rank, k);
    CHECK(wrong == 0);
    check_allreduce(call);
    end_call(call);
    free(blocks);
  }
#else
  (void)comm;
#endif
}

// A number of each rank's, which the others read without MPI.
static MPI_Win numbers;
static int* number;
static void open_numbers(MPI_Comm comm) {
  MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &number, &numbers);
  *number = 0;
  COUNTED(MPI_Barrier, comm);
}
static void tell(int n) {
  __atomic_store_n(number, n, __ATOMIC_RELEASE);
}
static void await(int of, int n) {
  MPI_Aint bytes;
  int unit, waited_ms = 0;
  int* theirs;
  MPI_Win_shared_query(numbers, of, &bytes, &unit, &theirs);
  while (__atomic_load_n(theirs, __ATOMIC_ACQUIRE) < n && waited_ms < 5000) {
    pause_ms(1);
    ++waited_ms;
  }
  CHECK(waited_ms < 5000);
}

static void local(MPI_Comm comm) {
  open_numbers(comm);
  for (int n = 1; n <= 36 && failures == 0; ++n) {
    const int first = n % ranks;
    struct call* call = new_call(n, counts[n / 3 % 4]);
    MPI_Request request;
    int done = 0;
    call->root = n % 2 == 0 ? first : 0;
    for (int i = 0; i < call->count; ++i) call->in[i] = operand(rank, i, n);
    if (rank != first) await(first, n);
    if (n % 3 == 0) ibarrier(comm, &request);
    if (n % 3 == 1) iallreduce(call, comm, &request);
    if (n % 3 == 2) ibcast(call, comm, &request);
    for (int test = 0; test < 3 && !done; ++test) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (rank == first) tell(n);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (n % 3 == 1) check_allreduce(call);
    if (n % 3 == 2) check_bcast(call);
    end_call(call);
  }
  MPI_Win_free(&numbers);
}

static void early(MPI_Comm comm) {
  open_numbers(comm);
  for (int n = 1; n <= 24 && failures == 0; ++n) {
    const int count = n % 3 == 0 ? 1 : 50;  // Open MPI itself waits with more than 256 bytes in shared memory
    struct call* call = new_call(n, count);
    call->root = 0;
    // Set up where all are there.
    const int leaves_early = n > 4 && (n % 2 == 0 ? rank == 0 : rank != 0);
    if (n > 4 && !leaves_early)
      for (int r = 0; r < ranks; ++r)
        if (n % 2 == 0 ? r == 0 : r != 0) await(r, n);
    if (n % 2 == 0) {
      CHECK(COUNTED(MPI_Bcast, call->in, count, MPI_INT, 0, comm) == MPI_SUCCESS);
      check_bcast(call);
    } else {
      CHECK(COUNTED(MPI_Reduce, call->in, call->out, count, MPI_INT, MPI_SUM, 0, comm) == MPI_SUCCESS);
      if (rank == 0) check_allreduce(call);
    }
    if (n == 4) CHECK(COUNTED(MPI_Barrier, comm) == MPI_SUCCESS);  // that is, here
    tell(n);
    end_call(call);
  }
  MPI_Win_free(&numbers);
}

// How often MPI was called since the last time, by the preloaded native_calls.c: where it is there, one call of the
// program's is one call of MPI's, of the same function.
static void expect_native(int blocking, int nonblocking) {
  int* const calls = dlsym(RTLD_DEFAULT, "native_calls");
  int* const nonblocking_calls = dlsym(RTLD_DEFAULT, "native_nonblocking_calls");
  if (calls == NULL || nonblocking_calls == NULL) return;
  CHECK(*calls == blocking && *nonblocking_calls == nonblocking);
  *calls = *nonblocking_calls = 0;
}

static void exact(MPI_Comm comm) {
  // An element without data against none.
  int to[64] = {0}, from[64] = {0}, places[64] = {0}, value = 0;
  MPI_Datatype nothing;
  MPI_Type_contiguous(0, MPI_INT, &nothing);
  MPI_Type_commit(&nothing);
  for (int r = 0; r < ranks; ++r) to[r] = 1;
  CHECK(COUNTED(MPI_Alltoallv, &value, to, places, nothing, &value, from, places, nothing, comm) == MPI_SUCCESS);
  expect_native(1, 0);
  MPI_Type_free(&nothing);
  // Between groups.
  MPI_Comm half, inter;
  const int side = rank % 2;
  MPI_Comm_split(comm, side, rank, &half);
  MPI_Intercomm_create(half, 0, comm, 1 - side, 5, &inter);
  for (int n = 0; n < 4; ++n) {
    int data[1000];
    for (int i = 0; i < 1000; ++i) data[i] = side == 0 ? i + n : -1;
    const int root = side != 0 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    CHECK(COUNTED(MPI_Bcast, data, 1000, MPI_INT, root, inter) == MPI_SUCCESS);
    expect_native(1, 0);
    int wrong = 0;
    for (int i = 0; i < 1000; ++i) wrong += data[i] != i + n;
    CHECK(wrong == 0);
  }
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
  // A communicator is made beside others that are being made.
  MPI_Group group;
  MPI_Comm_group(comm, &group);
  for (int n = 0; n < 10; ++n) {
    MPI_Comm copies[3], made;
    MPI_Request requests[3];
    for (int i = 0; i < 3; ++i) MPI_Comm_idup(comm, &copies[i], &requests[i]);
    MPI_Comm_create(comm, group, &made);
    MPI_Waitall(3, requests, statuses);
    for (int i = 0; i < 3; ++i) MPI_Comm_free(&copies[i]);
    MPI_Comm_free(&made);
  }
  MPI_Group_free(&group);
  // What comes from nobody says so, whether an operation is under way or not.
  int one = 1, sum = 0, token = 0, got = 7;
  MPI_Request request;
  if (rank != 0) COUNTED(MPI_Iallreduce, &one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
  for (int way = 0; way < 4; ++way) {
    MPI_Status status;
    memset(&status, 0x55, sizeof status);
    if (way == 0) MPI_Recv(&got, 1, MPI_INT, MPI_PROC_NULL, 3, comm, &status);
    if (way == 1) MPI_Sendrecv(&one, 1, MPI_INT, MPI_PROC_NULL, 3, &got, 1, MPI_INT, MPI_PROC_NULL, 3, comm, &status);
    if (way == 2) MPI_Sendrecv_replace(&got, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_PROC_NULL, 3, comm, &status);
    if (way == 3) MPI_Probe(MPI_PROC_NULL, 3, comm, &status);
    int count = -1;
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG && count == 0 && got == 7);
  }
  // A shift along a line that ends on both sides.
  const int left = rank == 0 ? MPI_PROC_NULL : rank - 1, right = rank == ranks - 1 ? MPI_PROC_NULL : rank + 1;
  token = rank;
  MPI_Sendrecv_replace(&token, 1, MPI_INT, right, 4, left, 4, comm, MPI_STATUS_IGNORE);
  CHECK(token == (rank == 0 ? 0 : rank - 1));
  MPI_Sendrecv(&rank, 1, MPI_INT, left, 5, &token, 1, MPI_INT, right, 5, comm, MPI_STATUS_IGNORE);
  CHECK(token == (rank == ranks - 1 ? (ranks == 1 ? 0 : rank - 1) : rank + 1));
  if (rank == 0) COUNTED(MPI_Iallreduce, &one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(sum == ranks);
}

static void leaves(MPI_Comm comm) {
  open_numbers(comm);
  for (int n = 1; n <= 30; ++n) {
    MPI_Request request;
    struct call* call = new_call(n, 1000);
    if (n % 3 == 0) COUNTED(MPI_Ibarrier, comm, &request);
    if (n % 3 == 1) COUNTED(MPI_Iallreduce, call->in, call->out, call->count, MPI_INT, MPI_SUM, comm, &request);
    if (n % 3 == 2) COUNTED(MPI_Ibcast, call->in, call->count, MPI_INT, call->root, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (n % 3 == 1) check_allreduce(call);
    if (n % 3 == 2) check_bcast(call);
    end_call(call);
    tell(n);
    for (int r = 0; r < ranks; ++r) await(r, n);
    if (failures != 0) break;
  }
  MPI_Win_free(&numbers);
}

static void results(MPI_Comm comm) {
  by_test(comm);
  several(comm);
  shapes(comm);
  in_place(comm);
  communicators();
}

int main(int argc, char** argv) {
  int level = 0;
  const int multiple = argc > 1 && strcmp(argv[1], "threads") == 0;
  MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  int level_now = -1;
  MPI_Query_thread(&level_now);
  CHECK(level_now == level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (rank == 0) printf("thread level %d\n", level);
  if (multiple && level < MPI_THREAD_MULTIPLE) {
    if (rank == 0) printf("this MPI has no MPI_THREAD_MULTIPLE\n");
    MPI_Finalize();
    return 77;
  }
  static const struct {
    const char* name;
    void (*run)(MPI_Comm comm);
  } scenes[] = {{"results", results}, {"waits", waits}, {"leaves", leaves}, {"threads", threads},
                {"local", local},     {"early", early}, {"exact", exact}};
  for (int i = 1; i < argc; ++i) {
    size_t scene = 0;
    while (scene < sizeof scenes / sizeof *scenes && strcmp(argv[i], scenes[scene].name) != 0) ++scene;
    if (scene == sizeof scenes / sizeof *scenes) MPI_Abort(MPI_COMM_WORLD, 2);
    scenes[scene].run(MPI_COMM_WORLD);
  }
  const int code = finish();
  MPI_Finalize();
  return code;
}
