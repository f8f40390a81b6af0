// MPI_Allreduce against MPI's own in turn in one process, to be run under papaya: what a replacement brings.
//
//   mpirun -n 2 papaya run allreduce_turns                 tight loop: time per call, medians of blocks
//   mpirun -n 8 papaya run allreduce_turns -a 2000         arrivals at random within 2000 us: excess over the last
//                                                          (-p: pause between calls in us; MPICH's 8 ranks need 60000)
//
// Excess: from the last arrival to a rank's exit, on the node's clock, over all ranks and calls. Arrivals are deadlines
// on that clock, slept for, since ranks may outnumber cores. Results are checked.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/measure/native.h"

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void sleep_until_us(double deadline) {
  struct timespec t;
  t.tv_sec = (time_t)(deadline / 1e6);
  t.tv_nsec = (long)((deadline - (double)t.tv_sec * 1e6) * 1e3);
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static double quantile(double* values, int count, double q) {
  qsort(values, (size_t)count, sizeof *values, ascending);
  return values[(int)(q * (count - 1))];
}

typedef int (*allreduce)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);

static int rank, ranks;
static double *send, *receive;

static void check(int doubles, double base) {
  const double expected = base * ranks + ranks * (ranks - 1) / 2.0;
  if (receive[0] == expected && receive[doubles - 1] == expected) return;
  fprintf(stderr, "rank %d: wrong result %g, expected %g\n", rank, receive[0], expected);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static double tight_block(allreduce call, int doubles, int iterations) {
  for (int i = 0; i < doubles; ++i) send[i] = rank + 1.0;
  const double begin = now_us();
  for (int i = 0; i < iterations; ++i) call(send, receive, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const double time = (now_us() - begin) / iterations;
  check(doubles, 1.0);
  return time;
}

// One call at deadlines; stamps go to arrival and exit.
static void timed_call(allreduce call, int doubles, double start, double within, double* arrival, double* exit_time) {
  for (int i = 0; i < doubles; ++i) send[i] = rank + 2.0;
  sleep_until_us(start + within * ((double)rand() / RAND_MAX));
  *arrival = now_us();
  call(send, receive, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  *exit_time = now_us();
  check(doubles, 2.0);
}

static void excess_of(const double* arrivals, const double* exits, int calls, double* out) {
  double* last = malloc(sizeof(double) * (size_t)calls);
  PMPI_Allreduce(arrivals, last, calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  for (int i = 0; i < calls; ++i) out[i] = exits[i] - last[i];
  free(last);
}

int main(int argc, char** argv) {
  double within = 0, pause = 8000;
  int blocks = 21, iterations = 2000, calls = 200;
  size_t largest = 4096;
  for (int option; (option = getopt(argc, argv, "a:b:i:n:m:p:")) != -1;) {
    if (option == 'a') within = atof(optarg);
    if (option == 'p') pause = atof(optarg);
    if (option == 'b') blocks = atoi(optarg);
    if (option == 'i') iterations = atoi(optarg);
    if (option == 'n') calls = atoi(optarg);
    if (option == 'm') largest = (size_t)atol(optarg);
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  srand(17 + (unsigned)rank);
  const allreduce native_allreduce = (allreduce)native_function("PMPI_Allreduce");
  send = malloc(largest + 8);
  receive = malloc(largest + 8);
  if (rank == 0)
    printf("%s, %d ranks, %s\n%10s %12s %12s %8s\n", "native and papaya in turn", ranks,
           within > 0 ? "random arrivals: p50 excess in us" : "tight loop: us per call", "bytes", "native", "papaya",
           "ratio");
  for (size_t bytes = 8; bytes <= largest; bytes *= 8) {
    const int doubles = (int)(bytes / 8);
    double native, ours;
    if (within == 0) {
      double* times[2] = {malloc(sizeof(double) * (size_t)blocks), malloc(sizeof(double) * (size_t)blocks)};
      for (int i = 0; i < 100; ++i) tight_block(MPI_Allreduce, doubles, 1);  // set up and warm
      for (int block = 0; block < blocks; ++block) {
        times[0][block] = tight_block(native_allreduce, doubles, iterations);
        times[1][block] = tight_block(MPI_Allreduce, doubles, iterations);
      }
      native = quantile(times[0], blocks, 0.5);
      ours = quantile(times[1], blocks, 0.5);
      free(times[0]);
      free(times[1]);
    } else {
      double *arrivals[2], *exits[2], *excess = malloc(sizeof(double) * (size_t)calls);
      for (int k = 0; k < 2; ++k) {
        arrivals[k] = malloc(sizeof(double) * (size_t)calls);
        exits[k] = malloc(sizeof(double) * (size_t)calls);
      }
      for (int i = 0; i < 20; ++i) MPI_Allreduce(send, receive, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      double start = now_us() + 20000;
      PMPI_Bcast(&start, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
      const double period = 2 * within + pause;  // time for the slowest to leave the call before
      for (int i = 0; i < calls; ++i)
        for (int k = 0; k < 2; ++k) {
          timed_call(k == 0 ? native_allreduce : MPI_Allreduce, doubles, start, within, &arrivals[k][i], &exits[k][i]);
          start += period;
        }
      double p50[2];
      double* all = malloc(sizeof(double) * (size_t)(calls * ranks));
      for (int k = 0; k < 2; ++k) {
        excess_of(arrivals[k], exits[k], calls, excess);
        PMPI_Gather(excess, calls, MPI_DOUBLE, all, calls, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        p50[k] = rank == 0 ? quantile(all, calls * ranks, 0.5) : 0;
      }
      native = p50[0];
      ours = p50[1];
      for (int k = 0; k < 2; ++k) {
        free(arrivals[k]);
        free(exits[k]);
      }
      free(all);
      free(excess);
    }
    if (rank == 0) printf("%10zu %12.3f %12.3f %8.2f\n", bytes, native, ours, ours / native);
    fflush(stdout);
  }
  free(send);
  free(receive);
  MPI_Finalize();
  return 0;
}
