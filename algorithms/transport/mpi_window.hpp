// The one window of a job for one-sided communication between nodes, sub-allocated by each rank to its
// communicators. One, since each costs MPI memory and a collective; and since Open MPI 4.1's `rdma` names the
// shared memory behind a window by job and context: windows of disjoint communicators with ranks on one
// machine get each other's data.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "algorithms/transport/arena.hpp"

namespace papaya {

class MpiWindow {
 public:
  // Collective over `world`, whose error handler must return. False, on all ranks alike, if this MPI cannot
  // do it: no memory, or one-sided operations that do not go with MPI_THREAD_MULTIPLE, say.
  bool create(MPI_Comm world, std::size_t bytes) noexcept;
  void free() noexcept;  // collective
  bool exists() const noexcept { return arena_.base() != nullptr; }

  Arena& arena() noexcept { return arena_; }  // of this rank's memory

  MPI_Win handle() const noexcept { return window_; }
  MPI_Comm world() const noexcept { return world_; }

 private:
  MPI_Comm world_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;
  Arena arena_;
};

}  // namespace papaya
