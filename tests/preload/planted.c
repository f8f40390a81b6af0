// Rank 1 is late by some ms somewhere outside of blocking collectives, or holds up another rank: CASE [CALLS [MS]].
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void work(double ms) {
  if (ms <= 0) return;
  struct timespec pause = {(time_t)(ms / 1e3), (long)(ms * 1e6) % 1000000000};
  nanosleep(&pause, NULL);
}

static int rank, ranks;
static double late_ms = 2;

static void iallreduce(int calls) {
  for (int i = 0; i < calls; ++i) {
    int one = 1, sum = 0;
    MPI_Request request;
    if (rank == 1) work(late_ms);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

// Of three ranks, each kind of waiting that collectives have.
static void waits(int calls) {
  for (int i = 0; i < calls; ++i) {
    int word = i, result = 0;
    work(rank == 1 ? late_ms : 0);
    MPI_Bcast(&word, 1, MPI_INT, 1, MPI_COMM_WORLD);
    work(rank == 1 ? late_ms : 0);
    MPI_Reduce(&word, &result, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    work(rank == 1 ? late_ms : 0);
    MPI_Allreduce(&word, &result, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    work(rank == 1 ? late_ms : 0);
    MPI_Scan(&word, &result, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    work(rank == 1 ? late_ms : 0);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

static void comm_dup(int calls) {
  for (int i = 0; i < calls; ++i) {
    MPI_Comm copy;
    if (rank == 1) work(late_ms);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_free(&copy);
  }
}

static void fence(int calls) {
  int word = 0;
  MPI_Win window;
  MPI_Win_create(&word, sizeof word, sizeof word, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  for (int i = 0; i < calls; ++i) {
    if (rank == 1) work(late_ms);
    MPI_Win_fence(0, window);
  }
  MPI_Win_free(&window);
}

static void ring(int calls) {
  for (int i = 0; i < calls; ++i) {
    int sent = i, received = 0;
    if (rank == 1) work(late_ms);
    MPI_Sendrecv(&sent, 1, MPI_INT, (rank + 1) % ranks, 0, &received, 1, MPI_INT, (rank + ranks - 1) % ranks, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

// Rank 1 is slow, rank 2 waits for its message, and comes last to the collective.
static void victim(int calls) {
  for (int i = 0; i < calls; ++i) {
    int word = i, sum = 0;
    if (rank == 1) {
      work(late_ms);
      MPI_Send(&word, 1, MPI_INT, 2, 0, MPI_COMM_WORLD);
    }
    if (rank == 2) {
      MPI_Recv(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      work(0.2);
    }
    MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
}

// The same, and rank 0 computes longer still; but nobody waits for its messages. Ranks are others in the communicator.
static void innocent(int calls) {
  MPI_Comm reversed;
  MPI_Comm_split(MPI_COMM_WORLD, 0, ranks - rank, &reversed);
  const int sender = ranks - 2, receiver = ranks - 3;
  for (int i = 0; i < calls; ++i) {
    int word = i, sum = 0;
    if (rank == 0) work(late_ms + 0.1);
    if (rank == 1) {
      work(late_ms);
      MPI_Send(&word, 1, MPI_INT, receiver, 0, reversed);
    }
    if (rank == 2 && i % 4 == 0) MPI_Recv(&word, 1, MPI_INT, sender, 0, reversed, MPI_STATUS_IGNORE);
    if (rank == 2 && i % 4 == 1) {
      MPI_Status status;
      MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 0, reversed, &status);
    }
    if (rank == 2 && i % 4 >= 2) {
      MPI_Status status;
      MPI_Request request;
      MPI_Irecv(&word, 1, MPI_INT, sender, 0, reversed, &request);
      if (i % 4 == 2)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      else
        MPI_Waitall(1, &request, &status);
    }
    if (rank == 2) work(0.4);
    MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  MPI_Comm_free(&reversed);
}

// The same through a collective of two ranks.
static void pair(int calls) {
  MPI_Comm two;
  MPI_Comm_split(MPI_COMM_WORLD, rank == 1 || rank == 2, rank, &two);
  for (int i = 0; i < calls; ++i) {
    int word = i, sum = 0;
    if (rank == 1) work(late_ms);
    if (rank == 1 || rank == 2) MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, two);
    if (rank == 2) work(0.2);
    MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  MPI_Comm_free(&two);
}

// Four ranks as a grid of two rows and two columns, each with a communicator of its own: rank 0 passes the delay on to
// its column, where nobody has heard of rank 1.
static void grid(int calls) {
  MPI_Comm row, column;
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &row);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &column);
  for (int i = 0; i < calls; ++i) {
    int word = i, sum = 0;
    if (rank == 1) work(late_ms);
    MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, row);
    MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, column);
  }
  MPI_Comm_free(&column);
  MPI_Comm_free(&row);
}

// Rank 1 comes late where nobody waits for it: as receiver of a bcast, as root of a reduce.
static void ahead(int calls) {
  for (int i = 0; i < calls; ++i) {
    int word = i;
    if (rank == 1) work(late_ms);
    MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  for (int i = 0; i < calls; ++i) {
    int word = i, sum = 0;
    if (rank == 1) work(late_ms);
    MPI_Reduce(&word, &sum, 1, MPI_INT, MPI_SUM, 1, MPI_COMM_WORLD);
  }
}

// Rank 1 is late where the others wait for it between two groups.
static void inter(int calls) {
  MPI_Comm half, both;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &both);
  for (int i = 0; i < calls; ++i) {
    int one = 1, sum = 0;
    if (rank == 1) work(late_ms);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, both);
  }
  MPI_Comm copy;
  MPI_Comm_dup(both, &copy);
  MPI_Barrier(copy);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&both);
  MPI_Comm_free(&half);
}

static void finalize(int calls) {
  for (int i = 0; i < 20; ++i) MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) work(late_ms * calls);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int calls = argc > 2 ? atoi(argv[2]) : 100;
  if (argc > 3) late_ms = atof(argv[3]);
  static const struct {
    const char* name;
    void (*run)(int);
  } cases[] = {{"iallreduce", iallreduce}, {"comm_dup", comm_dup}, {"fence", fence}, {"ring", ring},
               {"victim", victim},         {"innocent", innocent}, {"pair", pair},   {"ahead", ahead},
               {"finalize", finalize},     {"waits", waits},       {"inter", inter}, {"grid", grid}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
    if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) cases[i].run(calls);
  MPI_Finalize();
  return 0;
}
