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
  MPI_Comm world;
  MPI_Comm_dup(MPI_COMM_WORLD, &world);
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  MpiWindow window;
  if (!window.create(world, std::size_t{1} << 20)) {
    if (rank == 0) std::printf("no one-sided communication here\n");
    MPI_Finalize();
    return 77;
  }
  // Every other rank, too: disjoint groups at the same time, whose ranks have other numbers than in the
  // window.
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  int wrong = 0;
  // Made and freed again, too.
  for (int round = 0; round < 3; ++round)
    for (MPI_Comm comm : {MPI_COMM_WORLD, half}) {
      int own = 0;
      int size = 1;
      MPI_Comm_rank(comm, &own);
      MPI_Comm_size(comm, &size);
      std::vector<int> members(static_cast<std::size_t>(size));
      MPI_Allgather(&rank, 1, MPI_INT, members.data(), 1, MPI_INT, comm);
      const auto wire = MpiNotified::create(window, comm, members, NotifiedProperty::shape(size));
      wait::Site site;
      wrong += wire == nullptr ? 1 : NotifiedProperty(*wire, own, size, 40).run(policy, site);
    }
  // Too large for the window: none has it, and all say so.
  if (MpiNotified::create(window, MPI_COMM_WORLD, std::vector<int>(static_cast<std::size_t>(ranks)),
                          {std::size_t{2} << 20, 1}) != nullptr)
    ++wrong;
  window.free();
  MPI_Comm_free(&half);
  MPI_Comm_free(&world);
  int all_wrong = 0;
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d wrong on %d ranks\n", all_wrong, ranks);
  MPI_Finalize();
  return all_wrong == 0 ? 0 : 1;
}
