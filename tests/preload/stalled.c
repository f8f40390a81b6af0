// usage: stalled late|computing|slow|nonblocking|differ|asked|claimed
// late: rank 2 comes to an allreduce once papaya has said in PAPAYA_OUTPUT that it is missing.
// computing: rank 2 computes until then. TAKES_SIGNALS set: the program has handlers for all real-time signals; none
// may come. STOPPED: rank 1 is stopped meanwhile. slow: rank 2 comes 4 s later. nonblocking: the same, to an
// MPI_Iallreduce: the second, or with COLD set the first. chain: rank 0 waits for many MPI_Iallreduce at once, to which
// the others come one by one. COLD: without calls that are made before by all. differ: rank 1 calls a barrier on the
// communicator "forces", the others an allreduce. The program ends when that is said. asked: like late, and rank 2 asks
// by SIGUSR1 what the ranks wait for. claimed: the program takes SIGUSR1 for itself before or after MPI_Init.
// CLOCK_SET: once MPI runs the wall clock is set back by an hour.
#define _GNU_SOURCE
#include <glob.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static const char* awaited;  // a file of the output folder
static volatile sig_atomic_t signals;
static volatile long clock_shift_s;

// That of the whole process, libraries too.
int clock_gettime(clockid_t clock, struct timespec* now) {
  const int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += clock_shift_s;
  return result;
}

// The file is there, and has been written.
static int is_said(void) {
  char pattern[4096];
  glob_t found;
  struct stat status;
  snprintf(pattern, sizeof pattern, "%s/%s", getenv("PAPAYA_OUTPUT"), awaited);
  if (glob(pattern, 0, NULL, &found) != 0) return 0;
  const int is_written = stat(found.gl_pathv[0], &status) == 0 && status.st_size > 0;
  globfree(&found);
  return is_written;
}

static void wait_for_file(void) {
  for (int i = 0; i < 400; ++i) {
    if (is_said()) return;
    usleep(100000);
  }
  fprintf(stderr, "no %s within 40 s\n", awaited);
  _exit(1);
}

static void* end_with_file(void* unused) {
  wait_for_file();
  usleep(1000000);
  _exit(3);
  return unused;
}

static __attribute__((noinline)) void compute_forces(void) {
  volatile double force = 1;
  do
    for (int i = 0; i < 50000000; ++i) force = force * 1.0000001;  // line of compute_forces
  while (!is_said());
}

static void count_signal(int number) {
  (void)number;
  ++signals;
}

static __attribute__((noinline)) void energy(MPI_Comm comm) {
  int one = 1, sum = 0, size;
  MPI_Comm_size(comm, &size);
  COUNTED(MPI_Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, comm);
  CHECK(sum == size);
}

static void energy_meanwhile(void) {
  int one = 1, sum = 0, size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Request request;
  COUNTED(MPI_Iallreduce, &one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(sum == size);
}

int main(int argc, char** argv) {
  const char* const mode = argc > 1 ? argv[1] : "";
  const int claims = strcmp(mode, "claimed") == 0;
  int rank, level;
  if (claims && getenv("LATE_CLAIM") == NULL) signal(SIGUSR1, count_signal);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  printf("pid %ld\n", (long)getpid());
  fflush(stdout);
  if (getenv("CLOCK_SET") != NULL) clock_shift_s = -3600;
  const int is_cold = getenv("COLD") != NULL;
  for (int i = 0; i < 5 && !is_cold; ++i) energy(MPI_COMM_WORLD);
  if (claims) {
    if (getenv("LATE_CLAIM") != NULL) signal(SIGUSR1, count_signal);
    raise(SIGUSR1);
    sleep(3);
    CHECK(signals == 1);
  } else if (strcmp(mode, "chain") == 0) {
    enum { links = 80 };
    int one = 1, sums[links];
    MPI_Request requests[links];
    MPI_Status statuses[links];
    for (int i = 0; i < links; ++i) {
      if (rank != 0) usleep(50000);
      COUNTED(MPI_Iallreduce, &one, &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
      if (rank != 0) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    }
    if (rank == 0) MPI_Waitall(links, requests, statuses);
  } else if (strcmp(mode, "differ") == 0) {
    MPI_Comm forces;
    MPI_Comm_dup(MPI_COMM_WORLD, &forces);
    MPI_Comm_set_name(forces, "forces");
    pthread_t thread;
    awaited = "stall-*";
    pthread_create(&thread, NULL, end_with_file, NULL);
    if (rank == 1)
      MPI_Barrier(forces);
    else
      energy(forces);
    pthread_join(thread, NULL);
  } else {
    awaited = strcmp(mode, "asked") == 0 ? "asked.txt" : "stall-*";
    if (getenv("TAKES_SIGNALS") != NULL)
      for (int i = SIGRTMIN; i <= SIGRTMAX; ++i) signal(i, count_signal);
    if (strcmp(mode, "computing") == 0) {
      const pid_t stopped = getpid();
      if (rank == 1 && getenv("STOPPED") != NULL && fork() == 0) {
        kill(stopped, SIGSTOP);
        wait_for_file();
        kill(stopped, SIGCONT);
        _exit(0);
      }
      if (rank == 2) compute_forces();
    }
    const int nonblocking = strcmp(mode, "nonblocking") == 0;
    if (nonblocking && !is_cold) energy_meanwhile();
    if (rank == 2 && (nonblocking || strcmp(mode, "slow") == 0)) {
      sleep(4);
    } else if (rank == 2) {
      usleep(300000);
      if (strcmp(mode, "asked") == 0) raise(SIGUSR1);
      wait_for_file();
    }
    if (nonblocking)
      energy_meanwhile();
    else
      energy(MPI_COMM_WORLD);
    CHECK(signals == 0);
  }
  MPI_Finalize();
  return finish();
}
