// Every collective of MPI, each a known number of times and of known bytes, with and without MPI_IN_PLACE, and with its
// result checked.
//   calls blocking|nonblocking|persistent|large
#include <stdlib.h>

#include "check.h"
#include "mpi4.h"

enum form { blocking, nonblocking, persistent, large };
static enum form form = blocking;
static int rank, ranks;

static void complete(MPI_Request* request) {
  CHECK(MPI_Wait(request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

// CALL(size, Bcast, Ibcast, (ints), (counts)) calls MPI_Bcast, MPI_Ibcast, MPI_Bcast_init or MPI_Bcast_c with a message
// of that many ints. The second list of arguments is the one for MPI_Bcast_c, whose arrays of counts have other types.
#define UNWRAP(...) __VA_ARGS__
#if HAS_PERSISTENT_COLLECTIVES
#define CALL_PERSISTENT(name, ints)                                                         \
  if (form == persistent) {                                                                 \
    MPI_Request request;                                                                    \
    CHECK(COUNTED(MPI_##name##_init, UNWRAP ints, MPI_INFO_NULL, &request) == MPI_SUCCESS); \
    count_call("MPI_Start(" #name ")");                                                     \
    CHECK(MPI_Start(&request) == MPI_SUCCESS);                                              \
    complete(&request);                                                                     \
    CHECK(MPI_Request_free(&request) == MPI_SUCCESS);                                       \
  }
#else
#define CALL_PERSISTENT(name, ints)
#endif
#if HAS_LARGE_COUNTS
#define CALL_LARGE(name, counts)                 \
  if (form == large) {                           \
    count_call("MPI_" #name);                    \
    CHECK(MPI_##name##_c counts == MPI_SUCCESS); \
  }
#else
#define CALL_LARGE(name, counts)
#endif
#define CALL(size, name, iname, ints, counts)                                                             \
  do {                                                                                                    \
    static const char* const names[] = {"MPI_" #name, "MPI_" #iname, "MPI_" #name "_init", "MPI_" #name}; \
    count_bytes(names[form], (long)(size) * (long)sizeof(int));                                           \
    if (form == persistent) count_bytes("MPI_Start(" #name ")", (long)(size) * (long)sizeof(int));        \
    if (form == blocking) CHECK(COUNTED(MPI_##name, UNWRAP ints) == MPI_SUCCESS);                         \
    if (form == nonblocking) {                                                                            \
      MPI_Request request;                                                                                \
      CHECK(COUNTED(MPI_##iname, UNWRAP ints, &request) == MPI_SUCCESS);                                  \
      complete(&request);                                                                                 \
    }                                                                                                     \
    CALL_PERSISTENT(name, ints)                                                                           \
    CALL_LARGE(name, counts)                                                                              \
  } while (0)

enum { most_ranks = 16, block = 5, most = most_ranks * most_ranks * block };

// What rank `r` contributes as element `j` of call `n`.
static int value(int r, int j, int n) {
  return 1000 * n + 17 * r + j;
}

// Rank r's part in the v forms has r + 1 elements, and one element lies unused between the parts.
static int v_count[most_ranks], v_displacement[most_ranks];
static int same_count[most_ranks],
    same_displacement[most_ranks];  // for alltoallv and alltoallw: `block` each
static int w_displacement[most_ranks];
static MPI_Datatype w_type[most_ranks];
static const int none[most_ranks];  // where MPI does not look at counts
#if HAS_LARGE_COUNTS
static const MPI_Count none_c[most_ranks];
static MPI_Count v_count_c[most_ranks], same_count_c[most_ranks];
static MPI_Aint v_displacement_c[most_ranks], same_displacement_c[most_ranks], w_displacement_c[most_ranks];
#endif

static int send[most], receive[most];

static void set_up(void) {
  int used = 0;
  for (int r = 0; r < ranks; ++r) {
    v_count[r] = r + 1;
    v_displacement[r] = used;
    used += r + 2;
    same_count[r] = block;
    same_displacement[r] = r * (block + 1);
    w_displacement[r] = same_displacement[r] * (int)sizeof(int);
    w_type[r] = MPI_INT;
#if HAS_LARGE_COUNTS
    v_count_c[r] = v_count[r];
    v_displacement_c[r] = v_displacement[r];
    same_count_c[r] = same_count[r];
    same_displacement_c[r] = same_displacement[r];
    w_displacement_c[r] = w_displacement[r];
#endif
  }
}

static void clear(void) {
  for (int i = 0; i < most; ++i) send[i] = receive[i] = -1;
}

static const MPI_Comm world = MPI_COMM_WORLD;

static void barrier(int n) {
  (void)n;
  if (form == large) return;  // has no counts
  if (form == blocking) CHECK(COUNTED(MPI_Barrier, world) == MPI_SUCCESS);
  if (form == nonblocking) {
    MPI_Request request;
    CHECK(COUNTED(MPI_Ibarrier, world, &request) == MPI_SUCCESS);
    complete(&request);
  }
#if HAS_PERSISTENT_COLLECTIVES
  if (form == persistent) {
    MPI_Request request;
    CHECK(COUNTED(MPI_Barrier_init, world, MPI_INFO_NULL, &request) == MPI_SUCCESS);
    count_call("MPI_Start(Barrier)");
    CHECK(MPI_Start(&request) == MPI_SUCCESS);
    complete(&request);
    CHECK(MPI_Request_free(&request) == MPI_SUCCESS);
  }
#endif
}

static void bcast(int n) {
  const int root = n % ranks;
  for (int j = 0; j < block; ++j) receive[j] = rank == root ? value(root, j, n) : -1;
  CALL(block, Bcast, Ibcast, (receive, block, MPI_INT, root, world), (receive, block, MPI_INT, root, world));
  for (int j = 0; j < block; ++j) CHECK(receive[j] == value(root, j, n));
}

static void gather(int n) {
  const int root = n % ranks, in_place = n % 2 == 1 && rank == root;
  int* own = in_place ? receive + rank * block : send;
  const void* from = in_place ? MPI_IN_PLACE : send;
  for (int j = 0; j < block; ++j) own[j] = value(rank, j, n);
  // Receive arguments matter at the root only: elsewhere they are what no code may look at.
  void* to = rank == root ? receive : NULL;
  const int count = rank == root ? block : -5;
  const MPI_Datatype type = rank == root ? MPI_INT : MPI_DATATYPE_NULL;
  const int own_count = in_place ? 0 : block;
  const MPI_Datatype own_type = in_place ? MPI_DATATYPE_NULL : MPI_INT;
  CALL(block, Gather, Igather, (from, own_count, own_type, to, count, type, root, world),
       (from, own_count, own_type, to, count, type, root, world));
  if (rank == root)
    for (int r = 0; r < ranks; ++r)
      for (int j = 0; j < block; ++j) CHECK(receive[r * block + j] == value(r, j, n));
}

static void gatherv(int n) {
  const int root = n % ranks, in_place = n % 2 == 1 && rank == root;
  int* own = in_place ? receive + v_displacement[rank] : send;
  const void* from = in_place ? MPI_IN_PLACE : send;
  for (int j = 0; j <= rank; ++j) own[j] = value(rank, j, n);
  const MPI_Datatype type = in_place ? MPI_DATATYPE_NULL : MPI_INT;
  CALL(rank + 1, Gatherv, Igatherv,
       (from, in_place ? 0 : rank + 1, type, receive, v_count, v_displacement, MPI_INT, root, world),
       (from, in_place ? 0 : rank + 1, type, receive, v_count_c, v_displacement_c, MPI_INT, root, world));
  if (rank == root)
    for (int r = 0; r < ranks; ++r)
      for (int j = 0; j <= r; ++j) CHECK(receive[v_displacement[r] + j] == value(r, j, n));
}

static void scatter(int n) {
  const int root = n % ranks, in_place = n % 2 == 1 && rank == root;
  if (rank == root)
    for (int r = 0; r < ranks; ++r)
      for (int j = 0; j < block; ++j) send[r * block + j] = value(r, j, n);
  void* to = in_place ? MPI_IN_PLACE : receive;
  const int count = in_place ? 0 : block, sent = rank == root ? block : -5;
  const MPI_Datatype type = in_place ? MPI_DATATYPE_NULL : MPI_INT;
  const MPI_Datatype sent_type = rank == root ? MPI_INT : MPI_DATATYPE_NULL;
  CALL(block, Scatter, Iscatter, (send, sent, sent_type, to, count, type, root, world),
       (send, sent, sent_type, to, count, type, root, world));
  if (!in_place)
    for (int j = 0; j < block; ++j) CHECK(receive[j] == value(rank, j, n));
}

static void scatterv(int n) {
  const int root = n % ranks, in_place = n % 2 == 1 && rank == root;
  if (rank == root)
    for (int r = 0; r < ranks; ++r)
      for (int j = 0; j <= r; ++j) send[v_displacement[r] + j] = value(r, j, n);
  void* to = in_place ? MPI_IN_PLACE : receive;
  const int count = in_place ? 0 : rank + 1;
  const MPI_Datatype type = in_place ? MPI_DATATYPE_NULL : MPI_INT;
  CALL(rank + 1, Scatterv, Iscatterv, (send, v_count, v_displacement, MPI_INT, to, count, type, root, world),
       (send, v_count_c, v_displacement_c, MPI_INT, to, count, type, root, world));
  if (!in_place)
    for (int j = 0; j <= rank; ++j) CHECK(receive[j] == value(rank, j, n));
}

static void allgather(int n) {
  const int in_place = n % 2 == 1;
  int* own = in_place ? receive + rank * block : send;
  for (int j = 0; j < block; ++j) own[j] = value(rank, j, n);
  const void* from = in_place ? MPI_IN_PLACE : send;
  const MPI_Datatype type = in_place ? MPI_DATATYPE_NULL : MPI_INT;  // insignificant in place
  CALL(block, Allgather, Iallgather, (from, in_place ? 0 : block, type, receive, block, MPI_INT, world),
       (from, in_place ? 0 : block, type, receive, block, MPI_INT, world));
  for (int r = 0; r < ranks; ++r)
    for (int j = 0; j < block; ++j) CHECK(receive[r * block + j] == value(r, j, n));
}

static void allgatherv(int n) {
  const int in_place = n % 2 == 1;
  int* own = in_place ? receive + v_displacement[rank] : send;
  for (int j = 0; j <= rank; ++j) own[j] = value(rank, j, n);
  const void* from = in_place ? MPI_IN_PLACE : send;
  const int count = in_place ? 0 : rank + 1;
  const MPI_Datatype type = in_place ? MPI_DATATYPE_NULL : MPI_INT;
  CALL(rank + 1, Allgatherv, Iallgatherv, (from, count, type, receive, v_count, v_displacement, MPI_INT, world),
       (from, count, type, receive, v_count_c, v_displacement_c, MPI_INT, world));
  for (int r = 0; r < ranks; ++r)
    for (int j = 0; j <= r; ++j) CHECK(receive[v_displacement[r] + j] == value(r, j, n));
}

// Element j of what rank `from` sends to rank `to`.
static int pair_value(int from, int to, int j, int n) {
  return value(from, j, n) + 100000 * to;
}

static void alltoall(int n) {
  const int in_place = n % 2 == 1;
  int* own = in_place ? receive : send;
  for (int r = 0; r < ranks; ++r)
    for (int j = 0; j < block; ++j) own[r * block + j] = pair_value(rank, r, j, n);
  const void* from = in_place ? MPI_IN_PLACE : send;
  const int count = in_place ? 0 : block;
  const MPI_Datatype type = in_place ? MPI_DATATYPE_NULL : MPI_INT;
  CALL(block, Alltoall, Ialltoall, (from, count, type, receive, block, MPI_INT, world),
       (from, count, type, receive, block, MPI_INT, world));
  for (int r = 0; r < ranks; ++r)
    for (int j = 0; j < block; ++j) CHECK(receive[r * block + j] == pair_value(r, rank, j, n));
}

static void alltoallv(int n) {
  const int in_place = n % 2 == 1;
  int* own = in_place ? receive : send;
  for (int r = 0; r < ranks; ++r)
    for (int j = 0; j < block; ++j) own[same_displacement[r] + j] = pair_value(rank, r, j, n);
  const void* from = in_place ? MPI_IN_PLACE : send;
  CALL(ranks * block, Alltoallv, Ialltoallv,
       (from, in_place ? none : same_count, same_displacement, MPI_INT, receive, same_count, same_displacement, MPI_INT,
        world),
       (from, in_place ? none_c : same_count_c, same_displacement_c, MPI_INT, receive, same_count_c,
        same_displacement_c, MPI_INT, world));
  for (int r = 0; r < ranks; ++r)
    for (int j = 0; j < block; ++j) CHECK(receive[same_displacement[r] + j] == pair_value(r, rank, j, n));
}

static void alltoallw(int n) {
  const int in_place = n % 2 == 1;
  int* own = in_place ? receive : send;
  for (int r = 0; r < ranks; ++r)
    for (int j = 0; j < block; ++j) own[same_displacement[r] + j] = pair_value(rank, r, j, n);
  const void* from = in_place ? MPI_IN_PLACE : send;
  CALL(ranks * block, Alltoallw, Ialltoallw,
       (from, in_place ? none : same_count, w_displacement, w_type, receive, same_count, w_displacement, w_type, world),
       (from, in_place ? none_c : same_count_c, w_displacement_c, w_type, receive, same_count_c, w_displacement_c,
        w_type, world));
  for (int r = 0; r < ranks; ++r)
    for (int j = 0; j < block; ++j) CHECK(receive[same_displacement[r] + j] == pair_value(r, rank, j, n));
}

// Sum of value(r, j, n) over the ranks below `end`.
static int sum(int end, int j, int n) {
  return end * value(0, j, n) + 17 * end * (end - 1) / 2;
}

static void reduce(int n) {
  const int root = n % ranks, in_place = n % 2 == 1 && rank == root;
  int* own = in_place ? receive : send;
  for (int j = 0; j < block; ++j) own[j] = value(rank, j, n);
  const void* from = in_place ? MPI_IN_PLACE : send;
  void* to = rank == root ? receive : NULL;
  CALL(block, Reduce, Ireduce, (from, to, block, MPI_INT, MPI_SUM, root, world),
       (from, to, block, MPI_INT, MPI_SUM, root, world));
  if (rank == root)
    for (int j = 0; j < block; ++j) CHECK(receive[j] == sum(ranks, j, n));
}

static void allreduce(int n) {
  const int in_place = n % 2 == 1;
  int* own = in_place ? receive : send;
  for (int j = 0; j < block; ++j) own[j] = value(rank, j, n);
  const void* from = in_place ? MPI_IN_PLACE : send;
  CALL(block, Allreduce, Iallreduce, (from, receive, block, MPI_INT, MPI_SUM, world),
       (from, receive, block, MPI_INT, MPI_SUM, world));
  for (int j = 0; j < block; ++j) CHECK(receive[j] == sum(ranks, j, n));
}

static void reduce_scatter(int n) {
  const int in_place = n % 2 == 1;
  int* own = in_place ? receive : send;
  const int total = ranks * (ranks + 1) / 2, first = rank * (rank + 1) / 2;
  for (int j = 0; j < total; ++j) own[j] = value(rank, j, n);
  const void* from = in_place ? MPI_IN_PLACE : send;
  CALL(total, Reduce_scatter, Ireduce_scatter, (from, receive, v_count, MPI_INT, MPI_SUM, world),
       (from, receive, v_count_c, MPI_INT, MPI_SUM, world));
  for (int j = 0; j <= rank; ++j) CHECK(receive[j] == sum(ranks, first + j, n));
}

static void reduce_scatter_block(int n) {
  const int in_place = n % 2 == 1;
  int* own = in_place ? receive : send;
  for (int j = 0; j < ranks * block; ++j) own[j] = value(rank, j, n);
  const void* from = in_place ? MPI_IN_PLACE : send;
  CALL(block, Reduce_scatter_block, Ireduce_scatter_block, (from, receive, block, MPI_INT, MPI_SUM, world),
       (from, receive, block, MPI_INT, MPI_SUM, world));
  for (int j = 0; j < block; ++j) CHECK(receive[j] == sum(ranks, rank * block + j, n));
}

static void scan(int n) {
  const int in_place = n % 2 == 1;
  int* own = in_place ? receive : send;
  for (int j = 0; j < block; ++j) own[j] = value(rank, j, n);
  const void* from = in_place ? MPI_IN_PLACE : send;
  CALL(block, Scan, Iscan, (from, receive, block, MPI_INT, MPI_SUM, world),
       (from, receive, block, MPI_INT, MPI_SUM, world));
  for (int j = 0; j < block; ++j) CHECK(receive[j] == sum(rank + 1, j, n));
}

static void exscan(int n) {
  const int in_place = n % 2 == 1;
  int* own = in_place ? receive : send;
  for (int j = 0; j < block; ++j) own[j] = value(rank, j, n);
  const void* from = in_place ? MPI_IN_PLACE : send;
  CALL(block, Exscan, Iexscan, (from, receive, block, MPI_INT, MPI_SUM, world),
       (from, receive, block, MPI_INT, MPI_SUM, world));
  if (rank > 0)
    for (int j = 0; j < block; ++j) CHECK(receive[j] == sum(rank, j, n));
}

int main(int argc, char** argv) {
  static const char* const forms[] = {"blocking", "nonblocking", "persistent", "large"};
  const char* wanted = argc > 1 ? argv[1] : "blocking";
  while (form <= large && strcmp(forms[form], wanted) != 0) ++form;
  if (form > large) return 2;
  if ((form == persistent && !HAS_PERSISTENT_COLLECTIVES) || (form == large && !HAS_LARGE_COUNTS)) {
    printf("skipped: this MPI has no %s collectives\n", wanted);
    return 77;
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &ranks);
  if (ranks > most_ranks) MPI_Abort(world, 2);
  set_up();

  // Each its own number of times, so that a call booked under another name shows: 2 barriers, 3 bcasts, ...
  static void (*const all[])(int) = {barrier,   bcast,     gather,     gatherv,        scatter,
                                     scatterv,  allgather, allgatherv, alltoall,       alltoallv,
                                     alltoallw, reduce,    allreduce,  reduce_scatter, reduce_scatter_block,
                                     scan,      exscan};
  for (int which = 0; which < 17; ++which)
    for (int n = 0; n < which + 2; ++n) {
      clear();
      all[which](n);
    }

  // A program that calls PMPI_X by itself goes past the library and is not counted.
  int one = 1, all_ranks = 0;
  CHECK(PMPI_Allreduce(&one, &all_ranks, 1, MPI_INT, MPI_SUM, world) == MPI_SUCCESS);
  CHECK(all_ranks == ranks);

  const int code = finish();
  MPI_Finalize();
  return code;
}
