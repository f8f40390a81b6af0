// Runs with a planted cause of waiting, and without it: what_if CASE CALLS CAUSE_MS. Prints the seconds of its calls.
// Ranks sleep rather than compute, so that they do not share cores, unless the case says otherwise; each of them has
// something to do before each call, so that the cause is what it does longer. tools/measure/what_if.py runs all cases.
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double base_ms = 3;
static int rank, ranks;
static double cause_ms;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void sleep_ms(double ms) {
  if (ms <= 0) return;
  struct timespec pause = {(time_t)(ms / 1e3), (long)(ms * 1e6) % 1000000000};
  nanosleep(&pause, NULL);
}

// `late` for the rank, as often as that is true.
static void work(int late_rank, double late_ms) {
  sleep_ms(base_ms + (rank == late_rank ? late_ms : 0));
}

static void allreduce_on(MPI_Comm comm) {
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
}

static void allreduce(int calls) {
  for (int i = 0; i < calls; ++i) {
    work(1, cause_ms);
    allreduce_on(MPI_COMM_WORLD);
  }
}

// Ranks compute.
static void busy(int calls) {
  volatile double sum = 0;
  const double begin = now_ms();
  for (int i = 0; i < 4000000; ++i) sum += i;
  const double steps_per_ms = 4e6 / (now_ms() - begin);
  for (int i = 0; i < calls; ++i) {
    const double steps = steps_per_ms * (base_ms + (rank == 1 ? cause_ms : 0));
    for (int k = 0; k < (int)steps; ++k) sum += k;
    allreduce_on(MPI_COMM_WORLD);
  }
}

// The root of a broadcast.
static void bcast(int calls) {
  for (int i = 0; i < calls; ++i) {
    int word = i;
    work(1, cause_ms);
    MPI_Bcast(&word, 1, MPI_INT, 1, MPI_COMM_WORLD);
    if (i % 10 == 9) MPI_Barrier(MPI_COMM_WORLD);
  }
}

// A receiver of a broadcast, and all compute until the next barrier.
static void receiver(int calls) {
  for (int i = 0; i < calls; ++i) {
    int word = i;
    work(1, cause_ms);
    MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
    work(-1, 0);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

static void barrier(int calls) {
  for (int i = 0; i < calls; ++i) {
    work(1, cause_ms);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

static void two_sites(int calls) {
  for (int i = 0; i < calls; ++i) {
    work(1, cause_ms);
    allreduce_on(MPI_COMM_WORLD);
    work(0, 1);  // stays
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

static void alternating(int calls) {
  for (int i = 0; i < calls; ++i) {
    work(i % ranks, cause_ms);
    allreduce_on(MPI_COMM_WORLD);
  }
}

// Rank 1 holds up rank 2 by its message, and that rank 0; of two ranks rank 0 itself.
static void chain(int calls) {
  for (int i = 0; i < calls; ++i) {
    int word = i;
    if (rank == 1) {
      work(1, cause_ms);
      MPI_Send(&word, 1, MPI_INT, 2 % ranks, 0, MPI_COMM_WORLD);
    } else {
      sleep_ms(1);
      MPI_Recv(&word, 1, MPI_INT, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      sleep_ms(base_ms - 1);
      if (rank == 2) MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    allreduce_on(MPI_COMM_WORLD);
  }
}

static void outlier(int calls) {
  for (int i = 0; i < calls; ++i) {
    work(1, i == calls / 2 ? calls * cause_ms : 0);
    allreduce_on(MPI_COMM_WORLD);
  }
}

static void two_late(int calls) {
  for (int i = 0; i < calls; ++i) {
    work(rank == 2 ? 2 : 1, rank == 2 ? cause_ms / 2 : cause_ms);
    allreduce_on(MPI_COMM_WORLD);
  }
}

// Rank 1 comes late to a call of two ranks, before one of all.
static void pair(int calls) {
  MPI_Comm two;
  MPI_Comm_split(MPI_COMM_WORLD, rank == 1 || rank == 2, rank, &two);
  for (int i = 0; i < calls; ++i) {
    work(1, cause_ms);
    if (rank == 1 || rank == 2) {
      allreduce_on(two);
      sleep_ms(1);
    }
    allreduce_on(MPI_COMM_WORLD);
  }
  MPI_Comm_free(&two);
}

// Late at a reduction whose root it is not, where the others wait for rank 0 at the next call anyway.
static void absorbed(int calls) {
  for (int i = 0; i < calls; ++i) {
    int word = i, sum = 0;
    work(1, cause_ms);
    MPI_Reduce(&word, &sum, 1, MPI_INT, MPI_SUM, 2, MPI_COMM_WORLD);
    work(0, 2 * base_ms);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

// Each rank is as much out of step at every call, from the first message on: a pipeline.
static void pipeline(int calls) {
  for (int i = 0; i < calls; ++i) {
    int word = i, sum = 0;
    if (rank > 0) MPI_Recv(&word, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (i == 0 && rank == 1) sleep_ms(cause_ms);
    work(-1, 0);
    if (rank < ranks - 1) MPI_Send(&word, 1, MPI_INT, rank + 1, 0, MPI_COMM_WORLD);
    MPI_Reduce(&word, &sum, 1, MPI_INT, MPI_SUM, ranks - 1, MPI_COMM_WORLD);
  }
}

// Both ranks need something that they share, twice as long while the other one does; at every other call rank 1 comes
// to it late, and leaves it to the other one until then.
static void shared(int calls) {
  MPI_Win window;
  atomic_int* users = NULL;
  MPI_Aint bytes = 0;
  int unit = 0;
  MPI_Win_allocate_shared(rank == 0 ? sizeof *users : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &users, &window);
  MPI_Win_shared_query(window, 0, &bytes, &unit, &users);
  if (rank == 0) atomic_init(users, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < calls; ++i) {
    if (rank == 1 && i % 2 == 1) sleep_ms(cause_ms);
    atomic_fetch_add(users, 1);
    double done_ms = 0;
    double last_ms = now_ms();
    while (done_ms < base_ms) {
      sleep_ms(0.05);
      const double now = now_ms();
      done_ms += (now - last_ms) / atomic_load(users);
      last_ms = now;
    }
    atomic_fetch_sub(users, 1);
    allreduce_on(MPI_COMM_WORLD);
  }
  MPI_Win_free(&window);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(int calls);
  } cases[] = {{"allreduce", allreduce},     {"busy", busy},       {"bcast", bcast},
               {"receiver", receiver},       {"barrier", barrier}, {"two_sites", two_sites},
               {"alternating", alternating}, {"chain", chain},     {"outlier", outlier},
               {"two_late", two_late},       {"pair", pair},       {"absorbed", absorbed},
               {"pipeline", pipeline},       {"shared", shared}};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 2);
  cause_ms = atof(argv[3]);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    if (strcmp(argv[1], cases[i].name) != 0) continue;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    cases[i].run(atoi(argv[2]));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("%.6f\n", MPI_Wtime() - begin);
  }
  MPI_Finalize();
  return 0;
}
