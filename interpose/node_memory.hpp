// The memory that the ranks of this node share: one window, with the regions of plans and the arenas for deposits in
// it.
#pragma once

#include <mpi.h>

#include "algorithms/transport/deposit_arena.hpp"
#include "algorithms/transport/mpi/node_window.hpp"
#include "interpose/job.hpp"

namespace papaya {

struct NodeMemory {
  NodeWindow window;
  DepositArena deposits;             // in the window
  MPI_Comm comm = MPI_COMM_NULL;     // of the node; the job's
  bool may_read_neighbours = false;  // every rank of the node may read the memory of every other

  // Collective over the node, and only where calls may be replaced.
  void open(const Job& job);
  // Collective; no plan is left.
  void close() noexcept;

 private:
  void open_arena(int rank, bool concurrent);
};

}  // namespace papaya
