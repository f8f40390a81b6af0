// usage: nodes RANKS_PER_NODE [TOKEN]: what an MPI program sees of the nodes of the box; exit code 1 if it is
// not what it should be. With TOKEN leaves a file of that name in /dev/shm and calls MPI_Allreduce until
// something ends it.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { bytes = 8 << 20, name_bytes = 64 };

int main(int argc, char** argv) {
  const int ranks_per_node = argc > 1 ? atoi(argv[1]) : 0;
  MPI_Init(&argc, &argv);
  int rank, failures = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);

  char expected[name_bytes], host[name_bytes] = "";
  snprintf(expected, sizeof expected, "node%d", rank / ranks_per_node + 1);
  gethostname(host, sizeof host - 1);
  if (strcmp(host, expected) != 0) failures += fprintf(stderr, "rank %d is on %s, not %s\n", rank, host, expected) > 0;

  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int here, place;
  MPI_Comm_size(node, &here);
  MPI_Comm_rank(node, &place);
  if (here != ranks_per_node) failures += fprintf(stderr, "rank %d: %d ranks on its node\n", rank, here) > 0;

  if (argc > 2) {
    char path[256];
    snprintf(path, sizeof path, "/dev/shm/%s", argv[2]);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    if (rank == 0) printf("running\n"), fflush(stdout);
    double value = 1, sum;
    while (1) MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }

  // Within a node, then (the first of the first two nodes) between nodes; the runner counts what went over
  // the links.
  char* buffer = calloc(bytes, 1);
  if (place < 2 && here > 1) {
    memset(buffer, place + 1, bytes);
    MPI_Sendrecv_replace(buffer, bytes, MPI_BYTE, 1 - place, 0, 1 - place, 0, node, MPI_STATUS_IGNORE);
    if (buffer[0] != 2 - place || buffer[bytes - 1] != 2 - place) failures += fprintf(stderr, "wrong data\n") > 0;
  }
  if (rank == 0) memset(buffer, 7, bytes);
  const double begin_large = MPI_Wtime();
  if (rank == 0) {
    MPI_Send(buffer, bytes, MPI_BYTE, ranks_per_node, 1, MPI_COMM_WORLD);
    MPI_Recv(buffer, 1, MPI_BYTE, ranks_per_node, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (rank == ranks_per_node) {
    MPI_Recv(buffer, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(buffer, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    if (buffer[0] != 7 || buffer[bytes - 1] != 7) failures += fprintf(stderr, "wrong data from node1\n") > 0;
  }
  const double large = MPI_Wtime() - begin_large;
  // There and back, eight bytes.
  double best = 1;
  for (int i = 0; i < 200; ++i) {
    const double begin = MPI_Wtime();
    if (rank == 0) {
      MPI_Send(buffer, 8, MPI_BYTE, ranks_per_node, 2, MPI_COMM_WORLD);
      MPI_Recv(buffer, 8, MPI_BYTE, ranks_per_node, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == ranks_per_node) {
      MPI_Recv(buffer, 8, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(buffer, 8, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    }
    const double taken = MPI_Wtime() - begin;
    if (taken < best) best = taken;
  }
  free(buffer);
  MPI_Comm_free(&node);
  int sum;
  MPI_Allreduce(&failures, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0)
    printf("round trip %.1f us, 8 MiB %.1f us, %d failures\n", best * 1e6, large * 1e6, sum), fflush(stdout);
  MPI_Finalize();
  return sum == 0 ? 0 : 1;
}
