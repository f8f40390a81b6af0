// A solver-like loop with uneven work: every rank smooths its part of a line of cells, then all ranks agree
// on 8 KiB of moments and on one residual. One rank owns a finer part and works about 1.5 ms longer in every
// iteration; the others wait for it in MPI_Allreduce.
//
//   mpirun -n 4 examples/imbalanced [--iterations N] [--late SWEEPS] [--rotate] [--sleep]
//
// The work is a fixed amount of arithmetic and not a fixed time: where there are more ranks than cores,
// whoever spins in MPI_Allreduce takes the core from the rank all are waiting for, and that shows in the
// total time. --sleep waits by the clock instead, for arrival times that do not depend on the machine.
#include <getopt.h>
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { cells = 8192, moments = 1024 };  // 64 KiB of cells stay in the second-level cache; 8 KiB of moments

// About 20 us on a 3 GHz core: the loop carries a dependence from cell to cell, which no compiler can
// shorten.
enum { usual_sweeps = 25, late_sweeps = 75, sweep_us = 20 };

struct options {
  int iterations;
  int late;  // sweeps more on the late rank
  int rotate;
  int sleep;
};

static struct options parse(int argc, char** argv) {
  struct options options = {600, late_sweeps, 0, 0};
  static const struct option known[] = {{"iterations", required_argument, NULL, 'i'},
                                        {"late", required_argument, NULL, 'l'},
                                        {"rotate", no_argument, NULL, 'r'},
                                        {"sleep", no_argument, NULL, 's'},
                                        {NULL, 0, NULL, 0}};
  int letter;
  while ((letter = getopt_long(argc, argv, "i:l:rs", known, NULL)) != -1) {
    if (letter == 'i') options.iterations = atoi(optarg);
    if (letter == 'l') options.late = atoi(optarg);
    if (letter == 'r') options.rotate = 1;
    if (letter == 's') options.sleep = 1;
    if (letter == '?' || options.iterations < 1 || options.late < 0) {
      fprintf(stderr, "usage: imbalanced [--iterations N] [--late SWEEPS] [--rotate] [--sleep]\n");
      exit(2);
    }
  }
  return options;
}

static uint32_t next_random(uint32_t* state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 16;
}

// One Gauss-Seidel sweep of u'' = f with fixed ends.
static double sweep(double* u, double source) {
  double change = 0;
  for (int i = 1; i + 1 < cells; ++i) {
    const double updated = 0.5 * (u[i - 1] + u[i + 1] - source);
    change += (updated - u[i]) * (updated - u[i]);
    u[i] = updated;
  }
  return change;
}

static void sleep_us(long us) {
  const struct timespec duration = {us / 1000000, us % 1000000 * 1000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &duration, NULL);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const struct options options = parse(argc, argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  double* u = calloc(cells, sizeof *u);
  for (int i = 0; i < cells; ++i) u[i] = sin(0.001 * i * (rank + 1));
  double local[moments], global[moments];
  double checksum = 0, residual = 0;
  uint32_t random = 12345u + (uint32_t)rank;

  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    const int late_rank = options.rotate ? iteration % ranks : ranks - 1;
    int sweeps = usual_sweeps + (int)(next_random(&random) % 5);  // a little jitter everywhere
    if (rank == late_rank) sweeps += options.late;
    double change = 0;
    if (options.sleep) {
      sleep_us((long)sweeps * sweep_us);
      change = sweep(u, 1e-6);
    } else {
      for (int s = 0; s < sweeps; ++s) change = sweep(u, 1e-6);
    }

    for (int m = 0; m < moments; ++m) local[m] = u[m * (cells / moments)];
    MPI_Allreduce(local, global, moments, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&change, &residual, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    checksum += global[iteration % moments] + residual;
  }
  const double seconds = MPI_Wtime() - begin;

  if (rank == 0)
    printf("imbalanced: %d ranks, %d iterations, %.3f s, checksum %.9e\n", ranks, options.iterations, seconds,
           checksum);
  free(u);
  MPI_Finalize();
  return 0;
}
