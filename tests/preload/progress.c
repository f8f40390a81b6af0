// A rank that waits in MPI_Allreduce has to keep MPI going: another rank may sit in a send to it.
//   progress receive   rank 0 posts MPI_Irecv and enters MPI_Allreduce; rank 1 sends 4 MiB to it first
//   progress send      rank 0 posts MPI_Isend of 4 MiB and enters MPI_Allreduce; rank 1 receives it first
//   progress chain     through three ranks: 0 has sent to 1 and 2 waits for 1, both inside MPI_Allreduce
//   progress window    rank 1 locks, writes and unlocks rank 0's window while 0 is in MPI_Allreduce
//   progress pair      as receive, with rank 0 in MPI_Allreduce on a communicator of two and a third rank
//   outside
//   progress sends     rank 1 does many MPI_Ssend to rank 0, which has been in MPI_Allreduce for long
//   progress fetches   the same with MPI_Fetch_and_op and MPI_Win_flush
// In the last two the usual operation must not take as long as a sleep of the waiting rank. Several may be named.
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

#include "check.h"

enum { words = 1 << 19, rounds = 10 };  // 4 MiB: beyond every eager limit

static int rank, ranks;

static void allreduce(MPI_Comm comm) {
  int in = 1, sum = 0, members;
  MPI_Comm_size(comm, &members);
  CHECK(COUNTED(MPI_Allreduce, &in, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
  CHECK(sum == members);
}

static void pause_ms(long ms) {
  const struct timespec duration = {0, ms * 1000000};
  nanosleep(&duration, NULL);
}

static void fill(long long* data, int round) {
  for (int i = 0; i < words; i += 1024) data[i] = round * 7 + i;
}

static int is_right(const long long* data, int round) {
  for (int i = 0; i < words; i += 1024)
    if (data[i] != round * 7 + i) return 0;
  return 1;
}

static void receive(long long* data, int round, MPI_Comm comm) {
  if (rank == 0) {
    MPI_Request request;
    MPI_Irecv(data, words, MPI_LONG_LONG, 1, 1, MPI_COMM_WORLD, &request);
    allreduce(comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(is_right(data, round));
  } else if (rank == 1) {
    pause_ms(5);  // rank 0 is inside by then
    fill(data, round);
    MPI_Send(data, words, MPI_LONG_LONG, 0, 1, MPI_COMM_WORLD);
    allreduce(comm);
  } else if (comm == MPI_COMM_WORLD) {
    allreduce(comm);
  }
}

static void send(long long* data, int round) {
  if (rank == 0) {
    MPI_Request request;
    fill(data, round);
    MPI_Isend(data, words, MPI_LONG_LONG, 1, 2, MPI_COMM_WORLD, &request);
    allreduce(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    if (rank == 1) {
      pause_ms(5);
      MPI_Recv(data, words, MPI_LONG_LONG, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(is_right(data, round));
    }
    allreduce(MPI_COMM_WORLD);
  }
}

static void chain(long long* data, int round) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 0) {
    fill(data, round);
    MPI_Isend(data, words, MPI_LONG_LONG, 1, 3, MPI_COMM_WORLD, &request);
  }
  if (rank == 2) MPI_Irecv(data, words, MPI_LONG_LONG, 1, 4, MPI_COMM_WORLD, &request);
  if (rank == 1) {
    pause_ms(5);
    MPI_Recv(data, words, MPI_LONG_LONG, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(data, words, MPI_LONG_LONG, 2, 4, MPI_COMM_WORLD);
  }
  allreduce(MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank == 2) CHECK(is_right(data, round));
}

static void window(MPI_Win win, const long long* memory, int round) {
  if (rank == 1) {
    const long long word = 1000 + round;
    pause_ms(5);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Put(&word, 1, MPI_LONG_LONG, 0, 0, 1, MPI_LONG_LONG, win);
    MPI_Win_unlock(0, win);
  }
  allreduce(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    CHECK(memory[0] == 1000 + round);
    MPI_Win_unlock(0, win);
  }
  PMPI_Barrier(MPI_COMM_WORLD);  // the next round's word must not come before this look
}

enum { operations = 200, asleep_ms = 40, longest_us = 80 };
static double best_us = 1e9;  // an operation, of as many rounds as it takes to see a quick one

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void note(double begin_us) {
  const double us = (now_us() - begin_us) / operations;
  if (us < best_us) best_us = us;
}

static void sends(void) {
  static int in[operations];
  MPI_Request requests[operations];
  if (rank == 0)
    for (int i = 0; i < operations; ++i) MPI_Irecv(in + i, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, requests + i);
  PMPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    pause_ms(asleep_ms);
    const double begin = now_us();
    for (int i = 0; i < operations; ++i) MPI_Ssend(&i, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    note(begin);
  }
  allreduce(MPI_COMM_WORLD);
  for (int i = 0; rank == 0 && i < operations; ++i) {
    MPI_Wait(requests + i, MPI_STATUS_IGNORE);
    CHECK(in[i] == i);
  }
}

static void fetches(MPI_Win win, int round) {
  PMPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    const long long one = 1;
    long long before = -1;
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    pause_ms(asleep_ms);
    const double begin = now_us();
    for (int i = 0; i < operations; ++i) {
      MPI_Fetch_and_op(&one, &before, MPI_LONG_LONG, 0, 0, MPI_SUM, win);
      MPI_Win_flush(0, win);
      CHECK(before == round * operations + i);
    }
    note(begin);
    MPI_Win_unlock(0, win);
  }
  allreduce(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  long long* data = calloc(words, sizeof *data);
  MPI_Win win;
  long long* memory;
  MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  // Of memory that MPI does not share between processes.
  static long long counter[8];
  MPI_Win own;
  MPI_Win_create(counter, sizeof counter, sizeof *counter, MPI_INFO_NULL, MPI_COMM_WORLD, &own);
  MPI_Comm pair;
  MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, rank, &pair);

  // A library that prepares itself after some calls has done so before the scenes begin.
  for (int i = 0; i < 100; ++i) allreduce(MPI_COMM_WORLD);
  if (pair != MPI_COMM_NULL)
    for (int i = 0; i < 100; ++i) allreduce(pair);

  for (int scene = 1; scene < argc; ++scene) {
    const char* mode = argv[scene];
    if (ranks < (strcmp(mode, "chain") == 0 || strcmp(mode, "pair") == 0 ? 3 : 2)) MPI_Abort(MPI_COMM_WORLD, 2);
    const int is_timed = strcmp(mode, "sends") == 0 || strcmp(mode, "fetches") == 0;
    best_us = 1e9;
    // Others may use the cores for a while.
    for (int round = 0, most = is_timed ? 20 * rounds : rounds; round < most; ++round) {
      int is_quick = best_us < longest_us;
      if (is_timed) PMPI_Bcast(&is_quick, 1, MPI_INT, 1, MPI_COMM_WORLD);
      if (is_timed && is_quick) break;
      if (strcmp(mode, "receive") == 0) receive(data, round, MPI_COMM_WORLD);
      if (strcmp(mode, "send") == 0) send(data, round);
      if (strcmp(mode, "chain") == 0) chain(data, round);
      if (strcmp(mode, "window") == 0) window(win, memory, round);
      if (strcmp(mode, "sends") == 0) sends();
      if (strcmp(mode, "fetches") == 0) fetches(own, round);
      if (strcmp(mode, "pair") == 0) {
        receive(data, round, pair);
        MPI_Barrier(MPI_COMM_WORLD);
      }
    }
    if (best_us < 1e9) printf("%s: %.1f us an operation\n", mode, best_us);
    CHECK(rank != 1 || !is_timed || best_us < longest_us);
  }
  if (pair != MPI_COMM_NULL) MPI_Comm_free(&pair);
  MPI_Win_free(&own);
  MPI_Win_free(&win);
  free(data);
  const int code = finish();
  MPI_Finalize();
  return code;
}
