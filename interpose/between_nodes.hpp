// What carries data between nodes: MPI's messages or UCX. Opened if the selection, or PAPAYA_TRANSPORT, asks for it.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "algorithms/transport/mpi/arena_notified.hpp"
#include "algorithms/transport/mpi/mpi_messages.hpp"
#include "algorithms/transport/ucx/ucx_window.hpp"
#include "interpose/job.hpp"

namespace papaya {

struct BetweenNodes {
  // At most one of the two exists.
  MpiMessages mpi_messages;
  UcxWindow ucx;
  MPI_Comm comm = MPI_COMM_NULL;  // a copy of MPI_COMM_WORLD, for messages of TeamMessages
  bool has_too_little = false;    // PAPAYA_SHM_LIMIT allows no memory that ranks of other nodes write to

  // Collective over the job. `folder`: where libpapaya-ucx.so lies.
  void open(const Job& job, const char* folder);
  void close() noexcept;  // collective
  bool exists() const noexcept { return ucx.exists() || mpi_messages.exists(); }
  void progress() noexcept;

  // This rank's share for a wire among `members` of MPI_COMM_WORLD: null if there is no memory. With UCX they are
  // connected. Throws std::bad_alloc.
  std::unique_ptr<ArenaNotified> offer(const std::vector<int>& members, wait::Policy& policy,
                                       const SegmentShape& shape);
  std::size_t arena_bytes() noexcept { return (ucx.exists() ? ucx.arena() : mpi_messages.arena()).bytes(); }
};

}  // namespace papaya
