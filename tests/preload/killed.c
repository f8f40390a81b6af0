// Ranks call one collective for ever. In one of these calls the victim is stopped by a child of its own, which lets it
// make STEPS instructions more and then kills it.
//   killed COLLECTIVE VICTIM STEPS [CALLS]   after CALLS whole calls, 20 without
//   killed probe                     exit status 77 where ptrace is not permitted
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { numbers = 500, most_ranks = 8, marker = SIGUSR2 };

static volatile long calls;  // that this rank has made

// In the child: 0 if it could not trace its parent.
static int trace(pid_t victim, long steps, int ready) {
  const int can = ptrace(PTRACE_SEIZE, victim, NULL, NULL) == 0;
  const char answer = (char)can;
  if (write(ready, &answer, 1) != 1 || !can) return 0;
  int status = 0;
  // Whatever else it gets meanwhile is delivered.
  for (int signal = -1; signal != marker;) {
    if (waitpid(victim, &status, __WALL) != victim || !WIFSTOPPED(status)) return 0;
    signal = WSTOPSIG(status);
    if (signal != marker) ptrace(PTRACE_CONT, victim, NULL, (void*)(long)(status >> 16 != 0 ? 0 : signal));
  }
  const long before = ptrace(PTRACE_PEEKDATA, victim, (void*)&calls, NULL);
  for (long step = 0; step < steps; ++step) {
    const int signal = WSTOPSIG(status);
    ptrace(PTRACE_SINGLESTEP, victim, NULL, (void*)(long)(signal == SIGTRAP || signal == marker ? 0 : signal));
    if (waitpid(victim, &status, __WALL) != victim || !WIFSTOPPED(status)) return 0;
  }
  const long now = ptrace(PTRACE_PEEKDATA, victim, (void*)&calls, NULL);
  fprintf(stderr, "killed after %ld instructions and %ld whole calls\n", steps, now - before);
  kill(victim, SIGKILL);
  waitpid(victim, &status, __WALL);
  return 1;
}

// Returns once the child traces this process; false if it may not.
static int be_traced(long steps) {
  int pipe_ends[2];
  char answer = 0;
  if (pipe(pipe_ends) != 0) return 0;
#ifdef PR_SET_PTRACER
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
#endif
  const pid_t victim = getpid();
  if (fork() == 0) _exit(!trace(victim, steps, pipe_ends[1]));
  return read(pipe_ends[0], &answer, 1) == 1 && answer;
}

static void call(const char* collective, int rank, int ranks) {
  static int send[most_ranks * numbers], receive[most_ranks * numbers];
  // With the flag and in a slot.
  const int i = (int)calls, count = i % 2 == 0 ? 2 : numbers, last = count * ranks - 1, root = i / 2 % ranks;
  const int sum = ranks * (ranks - 1) / 2 + ranks * i;
  send[0] = send[count - 1] = send[last] = receive[0] = receive[count - 1] = rank + i;
  if (strcmp(collective, "allreduce") == 0) {
    MPI_Allreduce(send, receive, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(receive[0] == sum && receive[count - 1] == sum);
  } else if (strcmp(collective, "reduce") == 0) {
    MPI_Reduce(send, receive, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    CHECK(rank != root || (receive[0] == sum && receive[count - 1] == sum));
  } else if (strcmp(collective, "bcast") == 0) {
    MPI_Bcast(receive, count, MPI_INT, root, MPI_COMM_WORLD);
    CHECK(receive[0] == root + i && receive[count - 1] == root + i);
  } else if (strcmp(collective, "alltoall") == 0) {
    MPI_Alltoall(send, count, MPI_INT, receive, count, MPI_INT, MPI_COMM_WORLD);
    CHECK(rank != ranks - 1 || receive[count - 1] == i);
  } else if (strcmp(collective, "allgather") == 0) {
    MPI_Allgather(send, count, MPI_INT, receive, count, MPI_INT, MPI_COMM_WORLD);
    CHECK(receive[0] == i && receive[last] == ranks - 1 + i);
  } else if (strcmp(collective, "gather") == 0) {
    MPI_Gather(send, count, MPI_INT, receive, count, MPI_INT, root, MPI_COMM_WORLD);
    CHECK(rank != root || (receive[0] == i && receive[last] == ranks - 1 + i));
  } else if (strcmp(collective, "scatter") == 0) {
    MPI_Scatter(send, count, MPI_INT, receive, count, MPI_INT, root, MPI_COMM_WORLD);
    CHECK((rank != 0 || receive[0] == root + i) && (rank != ranks - 1 || receive[count - 1] == root + i));
  } else if (strcmp(collective, "reduce_scatter") == 0) {
    int counts[most_ranks];
    for (int r = 0; r < ranks; ++r) counts[r] = count;
    MPI_Reduce_scatter(send, receive, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK((rank != 0 || receive[0] == sum) && (rank != ranks - 1 || receive[count - 1] == sum));
  } else if (strcmp(collective, "reduce_scatter_block") == 0) {
    MPI_Reduce_scatter_block(send, receive, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK((rank != 0 || receive[0] == sum) && (rank != ranks - 1 || receive[count - 1] == sum));
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ++calls;
}

int main(int argc, char** argv) {
  if (argc == 2) {
    const int can = be_traced(0);
    if (can) raise(marker);  // ends this process by SIGKILL
    return 77;
  }
  if (argc != 4 && argc != 5) return 2;
  const long first_calls = argc == 5 ? atol(argv[4]) : 20;
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > most_ranks) MPI_Abort(MPI_COMM_WORLD, 2);
  const int is_victim = rank == atoi(argv[2]);
  for (;;) {
    if (is_victim && calls == first_calls) {
      CHECK(be_traced(atol(argv[3])));
      raise(marker);
    }
    call(argv[1], rank, ranks);
    if (failures > 0) MPI_Abort(MPI_COMM_WORLD, 9);
  }
}
