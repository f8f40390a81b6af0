// Ranks that MPI lets leave a collective before the others come to it, and that rely on it. MPI calls such programs
// unsafe, and they run natively.
//
// usage: ahead WHAT [blocks], with bcasts and reduces, or with scatters and gathers
//   setup    after each bcast (reduce) the root (another rank) sends what the receiver wants before it comes to the
//            call; on many communicators, so that whatever is set up lazily is set up in such a call
//   large    as setup, with messages of 4 to 12 KB
//   far      a root makes thousands of bcasts, a rank thousands of reduces, before anybody else comes to the first
//   behind   the same with one rank behind and the others in step, by turns with larger messages and other roots
//   started  the root starts hundreds of bcasts (MPI_Ibcast) and waits for each before anybody else comes to the first
//   crowded  on many communicators in turn, for which there is not enough memory
//   freed    a rank frees a communicator before the others come to its calls there
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { most = 1536, most_ranks = 8, calls = 3000 };

static int rank, ranks;

// Different at each call, element and root.
static double value(int call, int i, int root) {
  return call * 3.0 + i * 7.0 + root;
}

static void broadcast(int call, int count, int root, MPI_Comm comm) {
  static double data[most];
  for (int i = 0; i < count; ++i) data[i] = rank == root ? value(call, i, root) : -1;
  CHECK(COUNTED(MPI_Bcast, data, count, MPI_DOUBLE, root, comm) == MPI_SUCCESS);
  int wrong = 0;
  for (int i = 0; i < count; ++i) wrong += data[i] != value(call, i, root);
  CHECK(wrong == 0);
}

static void reduce(int call, int count, int root, MPI_Comm comm) {
  static double mine[most], sum[most];
  for (int i = 0; i < count; ++i) mine[i] = value(call, i, rank), sum[i] = -1;
  CHECK(COUNTED(MPI_Reduce, mine, sum, count, MPI_DOUBLE, MPI_SUM, root, comm) == MPI_SUCCESS);
  if (rank != root) return;
  int wrong = 0;
  for (int i = 0; i < count; ++i) wrong += sum[i] != ranks * value(call, i, 0) + ranks * (ranks - 1) / 2;
  CHECK(wrong == 0);
}

static void scatter(int call, int count, int root, MPI_Comm comm) {
  static double data[most_ranks * most], mine[most];
  for (int i = 0; i < ranks * count && rank == root; ++i) data[i] = value(call, i, root);
  CHECK(COUNTED(MPI_Scatter, data, count, MPI_DOUBLE, mine, count, MPI_DOUBLE, root, comm) == MPI_SUCCESS);
  int wrong = 0;
  for (int i = 0; i < count; ++i) wrong += mine[i] != value(call, rank * count + i, root);
  CHECK(wrong == 0);
}

static void gather(int call, int count, int root, MPI_Comm comm) {
  static double mine[most], data[most_ranks * most];
  for (int i = 0; i < count; ++i) mine[i] = value(call, i, rank);
  CHECK(COUNTED(MPI_Gather, mine, count, MPI_DOUBLE, data, count, MPI_DOUBLE, root, comm) == MPI_SUCCESS);
  int wrong = 0;
  for (int i = 0; i < ranks * count && rank == root; ++i) wrong += data[i] != value(call, i % count, i / count);
  CHECK(wrong == 0);
}

static int has_blocks;

// To the root, from whom the others do not wait; or from the root, who does not wait for the others.
static void call_one(int to_root, int call, int count, int root, MPI_Comm comm) {
  if (has_blocks)
    to_root ? gather(call, count, root, comm) : scatter(call, count, root, comm);
  else
    to_root ? reduce(call, count, root, comm) : broadcast(call, count, root, comm);
}

// Rank 0 and the last rank alone use messages: what holds for two holds for a chain of more.
static void setup(int to_root, int step) {
  for (int turn = 0; turn < 4; ++turn) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int call = 0; call < 24; ++call) {
      const int ahead = to_root ? ranks - 1 : 0;
      const int behind = to_root ? 0 : ranks - 1;
      int token = call;
      if (rank == behind) MPI_Recv(&token, 1, MPI_INT, ahead, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(token == call);
      call_one(to_root, call, 1 + turn * step, to_root ? behind : ahead, comm);
      if (rank == ahead && behind != ahead) MPI_Send(&token, 1, MPI_INT, behind, 1, MPI_COMM_WORLD);
      if (call == 7) MPI_Barrier(comm);  // some algorithms are set up where all meet
    }
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
  }
}

static void far(int to_root, int count) {
  const int ahead = to_root ? ranks - 1 : 0;
  const int behind = to_root ? 0 : ranks - 1;
  // In step at first.
  for (int call = 0; call < 20; ++call) {
    call_one(to_root, call, count, to_root ? behind : ahead, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  int token = 0;
  // All others wait for who is ahead.
  if (rank != ahead) MPI_Recv(&token, 1, MPI_INT, ahead, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int call = 0; call < calls; ++call) call_one(to_root, call, count, to_root ? behind : ahead, MPI_COMM_WORLD);
  if (rank == ahead)
    for (int other = 0; other < ranks; ++other)
      if (other != ahead) MPI_Send(&token, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
  // In step again.
  for (int call = 0; call < 200; ++call) {
    call_one(to_root, call, count, to_root ? behind : ahead, MPI_COMM_WORLD);
    if (call % 10 == 0) MPI_Barrier(MPI_COMM_WORLD);
  }
}

static void started(int count) {
  static double data[most];
  for (int call = 0; call < 420; ++call) {
    int token = 0;
    if (call < 20) MPI_Barrier(MPI_COMM_WORLD);
    if (call == 20 && rank != 0) MPI_Recv(&token, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; ++i) data[i] = rank == 0 ? value(call, i, 0) : -1;
    MPI_Request request;
    CHECK(COUNTED(MPI_Ibcast, data, count, MPI_DOUBLE, 0, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int wrong = 0;
    for (int i = 0; i < count; ++i) wrong += data[i] != value(call, i, 0);
    CHECK(wrong == 0);
  }
  if (rank == 0)
    for (int other = 1; other < ranks; ++other) MPI_Send(&rank, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
}

static void crowded(int to_root) {
  enum { comms = 30, count = 120 };
  const int ahead = to_root ? ranks - 1 : 0;
  const int behind = to_root ? 0 : ranks - 1;
  MPI_Comm comm[comms];
  for (int i = 0; i < comms; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
  for (int turn = 0; turn < 3; ++turn) {
    // In step, then all others wait for who is ahead.
    for (int call = 0; call < 8 * comms; ++call) {
      MPI_Barrier(MPI_COMM_WORLD);
      call_one(to_root, call, count, to_root ? behind : ahead, comm[call % comms]);
    }
    int token = 0;
    if (rank != ahead) MPI_Recv(&token, 1, MPI_INT, ahead, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int call = 0; call < 40 * comms; ++call)
      call_one(to_root, call, count, to_root ? behind : ahead, comm[call % comms]);
    if (rank == ahead)
      for (int other = 0; other < ranks; ++other)
        if (other != ahead) MPI_Send(&token, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
  }
  for (int i = 0; i < comms; ++i) MPI_Comm_free(&comm[i]);
}

static void freed(int to_root) {
  const int ahead = to_root ? ranks - 1 : 0;
  const int behind = to_root ? 0 : ranks - 1;
  for (int turn = 0; turn < 20; ++turn) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    int token = turn;
    for (int call = 0; call < 40; ++call) {
      if (call == 8) MPI_Barrier(comm);
      if (call == 20 && rank == behind) MPI_Recv(&token, 1, MPI_INT, ahead, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      call_one(to_root, call, 1 + turn * 5, to_root ? behind : ahead, comm);
    }
    MPI_Comm_free(&comm);
    if (rank == ahead && ahead != behind) MPI_Send(&token, 1, MPI_INT, behind, 1, MPI_COMM_WORLD);
  }
}

// The last rank comes to all of them when rank 0 has made them.
static void behind(int to_root) {
  for (int turn = 0; turn < 6; ++turn) {
    int token = 0;
    if (rank == ranks - 1) MPI_Recv(&token, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int call = 0; call < 300; ++call) {
      const int count = call % 50 == 49 ? 40 : 1 + call % 12;  // some in a line, some not
      call_one(to_root, call, count, to_root ? ranks - 1 : 0, MPI_COMM_WORLD);
    }
    if (rank == 0 && ranks > 1) MPI_Send(&token, 1, MPI_INT, ranks - 1, 1, MPI_COMM_WORLD);
    // Every rank is the root in turn.
    for (int call = 0; call < 3 * ranks; ++call) call_one(to_root, call, 300, call % ranks, MPI_COMM_WORLD);
    if (turn % 2 == 0) MPI_Barrier(MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char* const what = argc > 1 ? argv[1] : "";
  has_blocks = argc > 2 && strcmp(argv[2], "blocks") == 0;
  for (int to_root = 0; to_root < 2; ++to_root) {
    if (strcmp(what, "setup") == 0) setup(to_root, to_root ? 60 : 100);
    if (strcmp(what, "large") == 0) setup(to_root, 500);
    if (strcmp(what, "far") == 0) far(to_root, 1), far(to_root, 120);
    if (strcmp(what, "started") == 0 && !to_root) started(1), started(120);
    if (strcmp(what, "crowded") == 0) crowded(to_root);
    if (strcmp(what, "freed") == 0) freed(to_root);
    if (strcmp(what, "behind") == 0) behind(to_root);
  }
  const int code = finish();
  MPI_Finalize();
  return code;
}
