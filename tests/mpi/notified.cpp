// Notified communication by MPI's one-sided operations: the same property as through shared memory.
#include <mpi.h>

#include <cstdio>

#include "algorithms/transport/mpi_notified.hpp"
#include "tests/protocol/notified_property.hpp"

namespace {
void poke() {
  int found = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}
}  // namespace

int main(int argc, char** argv) {
  using namespace papaya;
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  wait::Policy policy;
  policy.configure(wait::Mode::yield,
                   {.cores = 1, .ranks = ranks, .board = nullptr, .rank = rank, .ns_per_tick = 1.0}, poke);
  int wrong = 0;
  // Made and freed again, too.
  for (int round = 0; round < 3; ++round) {
    const auto wire = MpiNotified::create(MPI_COMM_WORLD, NotifiedProperty::shape(ranks));
    if (wire == nullptr) {
      if (rank == 0) std::printf("no one-sided communication here\n");
      MPI_Finalize();
      return 77;
    }
    wait::Site site;
    wrong += NotifiedProperty(*wire, rank, ranks, 40).run(policy, site);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  int all_wrong = 0;
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d wrong on %d ranks\n", all_wrong, ranks);
  MPI_Finalize();
  return all_wrong == 0 ? 0 : 1;
}
