// Neighbourhood collectives in all their forms, whose results are checked, on a ring and on a graph where rank 0 sends
// to all others and gets nothing.
#include <unistd.h>

#include "check.h"
#include "mpi4.h"

enum { most = 16 };

static int rank, ranks;
static int received[4 * most], sent[4 * most];
static int ones[most], places[most];
static MPI_Aint offsets[most];
static MPI_Datatype types[most];

// On the ring: from the left and from the right.
static void check_ring(int from_left, int from_right) {
  CHECK(received[0] == from_left && received[1] == from_right);
  received[0] = received[1] = -1;
}

static void complete(MPI_Request* request) {
  MPI_Wait(request, MPI_STATUS_IGNORE);
}

#if HAS_PERSISTENT_COLLECTIVES
static void persistent_on_ring(MPI_Comm ring, int left, int right) {
  MPI_Request all[6];
  MPI_Neighbor_allgather_init(sent, 1, MPI_INT, received, 1, MPI_INT, ring, MPI_INFO_NULL, &all[0]);
  MPI_Neighbor_allgatherv_init(sent, 1, MPI_INT, received, ones, places, MPI_INT, ring, MPI_INFO_NULL, &all[1]);
  MPI_Neighbor_alltoall_init(sent, 1, MPI_INT, received, 1, MPI_INT, ring, MPI_INFO_NULL, &all[2]);
  MPI_Neighbor_alltoallv_init(sent, ones, places, MPI_INT, received, ones, places, MPI_INT, ring, MPI_INFO_NULL,
                              &all[3]);
  MPI_Neighbor_alltoallw_init(sent, ones, offsets, types, received, ones, offsets, types, ring, MPI_INFO_NULL, &all[4]);
#if HAS_LARGE_COUNTS
  MPI_Neighbor_alltoall_init_c(sent, 1, MPI_INT, received, 1, MPI_INT, ring, MPI_INFO_NULL, &all[5]);
#else
  MPI_Neighbor_alltoall_init(sent, 1, MPI_INT, received, 1, MPI_INT, ring, MPI_INFO_NULL, &all[5]);
#endif
  for (int i = 0; i < 6; ++i) {
    for (int twice = 0; twice < 2; ++twice) {
      MPI_Start(&all[i]);
      MPI_Wait(&all[i], MPI_STATUS_IGNORE);
      check_ring(10 * left + (i > 1), 10 * right);
    }
    MPI_Request_free(&all[i]);
  }
}
#endif

static void on_ring(MPI_Comm ring) {
  const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
  MPI_Request request;
  for (int i = 0; i < 3; ++i) {
    // The last rank is late; who is no neighbour of it does not wait for it.
    if (rank == ranks - 1) usleep(4000);
    sent[0] = rank;
    MPI_Neighbor_allgather(sent, 1, MPI_INT, received, 1, MPI_INT, ring);
    check_ring(left, right);
  }
  MPI_Neighbor_allgatherv(sent, 1, MPI_INT, received, ones, places, MPI_INT, ring);
  check_ring(left, right);
  sent[0] = 10 * rank;
  sent[1] = 10 * rank + 1;
  // What the left one sends to its right.
  MPI_Neighbor_alltoall(sent, 1, MPI_INT, received, 1, MPI_INT, ring);
  check_ring(10 * left + 1, 10 * right);
  MPI_Neighbor_alltoallv(sent, ones, places, MPI_INT, received, ones, places, MPI_INT, ring);
  check_ring(10 * left + 1, 10 * right);
  MPI_Neighbor_alltoallw(sent, ones, offsets, types, received, ones, offsets, types, ring);
  check_ring(10 * left + 1, 10 * right);

  MPI_Ineighbor_allgather(sent, 1, MPI_INT, received, 1, MPI_INT, ring, &request);
  complete(&request);
  check_ring(10 * left, 10 * right);
  MPI_Ineighbor_allgatherv(sent, 1, MPI_INT, received, ones, places, MPI_INT, ring, &request);
  complete(&request);
  check_ring(10 * left, 10 * right);
  MPI_Ineighbor_alltoall(sent, 1, MPI_INT, received, 1, MPI_INT, ring, &request);
  complete(&request);
  check_ring(10 * left + 1, 10 * right);
  MPI_Ineighbor_alltoallv(sent, ones, places, MPI_INT, received, ones, places, MPI_INT, ring, &request);
  complete(&request);
  check_ring(10 * left + 1, 10 * right);
  MPI_Ineighbor_alltoallw(sent, ones, offsets, types, received, ones, offsets, types, ring, &request);
  complete(&request);
  check_ring(10 * left + 1, 10 * right);
#if HAS_LARGE_COUNTS
  static MPI_Count counts[most];
  static MPI_Aint displacements[most];
  for (int i = 0; i < most; ++i) {
    counts[i] = 1;
    displacements[i] = i;
  }
  MPI_Neighbor_allgather_c(sent, 1, MPI_INT, received, 1, MPI_INT, ring);
  check_ring(10 * left, 10 * right);
  MPI_Neighbor_allgatherv_c(sent, 1, MPI_INT, received, counts, displacements, MPI_INT, ring);
  check_ring(10 * left, 10 * right);
  MPI_Neighbor_alltoall_c(sent, 1, MPI_INT, received, 1, MPI_INT, ring);
  check_ring(10 * left + 1, 10 * right);
  MPI_Neighbor_alltoallv_c(sent, counts, displacements, MPI_INT, received, counts, displacements, MPI_INT, ring);
  check_ring(10 * left + 1, 10 * right);
  MPI_Neighbor_alltoallw_c(sent, counts, offsets, types, received, counts, offsets, types, ring);
  check_ring(10 * left + 1, 10 * right);
  MPI_Ineighbor_alltoallv_c(sent, counts, displacements, MPI_INT, received, counts, displacements, MPI_INT, ring,
                            &request);
  complete(&request);
  check_ring(10 * left + 1, 10 * right);
#endif
#if HAS_PERSISTENT_COLLECTIVES
  persistent_on_ring(ring, left, right);
#endif
}

static void on_graph(MPI_Comm graph) {
  sent[0] = 7;
  received[0] = -1;
  MPI_Neighbor_allgather(sent, 1, MPI_INT, received, 1, MPI_INT, graph);
  CHECK(received[0] == (rank == 0 ? -1 : 7));
  for (int i = 0; i < ranks; ++i) sent[i] = 100 + i;
  MPI_Neighbor_alltoallv(sent, ones, places, MPI_INT, received, ones, places, MPI_INT, graph);
  CHECK(received[0] == (rank == 0 ? -1 : 99 + rank));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < most; ++i) {
    ones[i] = 1;
    places[i] = i;
    offsets[i] = i * (MPI_Aint)sizeof(int);
    types[i] = MPI_INT;
  }
  const int periodic = 1, root = 0;
  int others[most];
  for (int i = 1; i < ranks; ++i) others[i - 1] = i;
  MPI_Comm ring, graph;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &ring);
  MPI_Comm_set_name(ring, "ring");
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank == 0 ? 0 : 1, &root, ones, rank == 0 ? ranks - 1 : 0, others,
                                 ones, MPI_INFO_NULL, 0, &graph);
  MPI_Comm_set_name(graph, "star");
  on_ring(ring);
  on_graph(graph);
  MPI_Barrier(ring);
  MPI_Comm_free(&graph);
  MPI_Comm_free(&ring);
  MPI_Finalize();
  return finish();
}
