// The memory that the ranks of this node share: one window, with the regions of plans and the arenas for deposits in
// it.
#pragma once

#include "algorithms/transport/deposit_arena.hpp"
#include "algorithms/transport/mpi/node_window.hpp"
#include "interpose/job.hpp"

namespace papaya {

struct NodeMemory {
  NodeWindow window;
  DepositArena deposits;             // in the window
  bool is_wanted = false;            // some selection was not native when it was opened
  bool may_read_neighbours = false;  // every rank of the node may read the memory of every other

  // Collective over the node, and only where calls may be replaced. In `file`, if it is one.
  void open(const Job& job, NodeWindow::File file);
  // Collective; no plan is left.
  void close() noexcept;

 private:
  void open_arena(OutOfBand& node, bool concurrent);
};

}  // namespace papaya
