// Papaya's own communicators and calls leave those of the program what they are natively.
//
// Before each graph the program makes 21 nonblocking calls on its communicator. Open MPI 4.1 gives the 24th and the
// 25th such call on a communicator the tags by which MPI_Dist_graph_create receives edges from any rank, and makes
// three itself to create a communicator. That leaves room for the graph's own three, but for none of papaya's: the
// first of the graph's would be the 25th, and what the ranks without edges send in it while rank 0 still receives would
// be taken for edges.
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#include "check.h"

enum { calls_before = 21, edges = 1 << 18 };

static void pause_after(int us) {
  const struct itimerval once = {{0, 0}, {0, us}};
  setitimer(ITIMER_REAL, &once, NULL);
}

// Of every 11 ms rank 0 is away for 10.
static void pause_for_a_while(int signal) {
  (void)signal;
  const struct timespec while_others_go_on = {0, 10 * 1000 * 1000};
  nanosleep(&while_others_go_on, NULL);
  pause_after(1000);
}

static void make_graph(MPI_Comm comm) {
  for (int call = 0; call < calls_before; ++call) {
    MPI_Request request;
    MPI_Ibarrier(comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  int rank, ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  // All edges lead from rank 0 to rank 0, and are given by the last two ranks.
  const int gives = rank >= ranks - 2 ? edges : 0;
  int* const targets = calloc(edges, sizeof *targets);
  int* const weights = calloc(edges, sizeof *weights);
  const int source = 0;
  struct sigaction action = {.sa_handler = pause_for_a_while, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  if (rank == 0) pause_after(1000);
  MPI_Comm graph;
  MPI_Dist_graph_create(comm, gives != 0, &source, &gives, targets, weights, MPI_INFO_NULL, 0, &graph);
  action.sa_handler = SIG_IGN;
  sigaction(SIGALRM, &action, NULL);
  int in, out, weighted;
  MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted);
  CHECK(in == (rank == 0 ? 2 * edges : 0));
  CHECK(out == in);
  MPI_Comm_free(&graph);
  free(targets);
  free(weights);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  make_graph(MPI_COMM_WORLD);
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
#if defined(OPEN_MPI)
  // The lowest free number. If one is taken on some ranks only, the ranks need more rounds to agree on a context id, in
  // which pending MPI_Comm_idup now and then hang.
  int numbers[2] = {MPI_Comm_c2f(copy), -MPI_Comm_c2f(copy)};
  MPI_Allreduce(MPI_IN_PLACE, numbers, 2, MPI_INT, MPI_MAX, copy);
  CHECK(numbers[0] == -numbers[1]);
#endif
  make_graph(copy);
  MPI_Comm_free(&copy);
  const int code = finish();
  MPI_Finalize();
  return code;
}
