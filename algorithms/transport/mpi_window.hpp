// The one window of a job for one-sided communication between nodes, sub-allocated by each rank to its
// communicators. One, since each costs MPI memory and a collective; and since Open MPI 4.1's `rdma` names the
// shared memory behind a window by job and context: windows of disjoint communicators with ranks on one
// machine get each other's data.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace papaya {

class MpiWindow {
 public:
  // Collective over `world`, whose error handler must return. False, on all ranks alike, if this MPI cannot
  // do it: no memory, or one-sided operations that do not go with MPI_THREAD_MULTIPLE, say.
  bool create(MPI_Comm world, std::size_t bytes) noexcept;
  void free() noexcept;  // collective
  bool exists() const noexcept { return base_ != nullptr; }

  // Of this rank's memory, zeroed: an offset, or -1. To be released once nobody writes there any more.
  std::int64_t allocate(std::size_t bytes) noexcept;
  void release(std::int64_t offset, std::size_t bytes) noexcept;

  MPI_Win handle() const noexcept { return window_; }
  MPI_Comm world() const noexcept { return world_; }
  std::byte* base() const noexcept { return base_; }

 private:
  MPI_Comm world_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;
  std::byte* base_ = nullptr;
  std::mutex mutex_;
  std::vector<bool> used_;  // pages
};

}  // namespace papaya
