// A rank that waits in MPI_Allreduce has to keep MPI going: another rank may sit in a send to it.
//   progress receive   rank 0 posts MPI_Irecv and enters MPI_Allreduce; rank 1 sends 4 MiB to it first
//   progress send      rank 0 posts MPI_Isend of 4 MiB and enters MPI_Allreduce; rank 1 receives it first
//   progress chain     through three ranks: 0 has sent to 1 and 2 waits for 1, both inside MPI_Allreduce
//   progress window    rank 1 locks, writes and unlocks rank 0's window while 0 is in MPI_Allreduce
//   progress pair      as receive, with rank 0 in MPI_Allreduce on a communicator of two and a third rank
//   outside
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

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char* mode = argc > 1 ? argv[1] : "receive";
  if (ranks < (strcmp(mode, "chain") == 0 || strcmp(mode, "pair") == 0 ? 3 : 2)) MPI_Abort(MPI_COMM_WORLD, 2);
  long long* data = calloc(words, sizeof *data);
  MPI_Win win;
  long long* memory;
  MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Comm pair;
  MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, rank, &pair);

  // A library that prepares itself after some calls has done so before the scenes begin.
  for (int i = 0; i < 100; ++i) allreduce(MPI_COMM_WORLD);
  if (pair != MPI_COMM_NULL)
    for (int i = 0; i < 100; ++i) allreduce(pair);

  for (int round = 0; round < rounds; ++round) {
    if (strcmp(mode, "receive") == 0) receive(data, round, MPI_COMM_WORLD);
    if (strcmp(mode, "send") == 0) send(data, round);
    if (strcmp(mode, "chain") == 0) chain(data, round);
    if (strcmp(mode, "window") == 0) window(win, memory, round);
    if (strcmp(mode, "pair") == 0) {
      receive(data, round, pair);
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
  if (pair != MPI_COMM_NULL) MPI_Comm_free(&pair);
  MPI_Win_free(&win);
  free(data);
  const int code = finish();
  MPI_Finalize();
  return code;
}
