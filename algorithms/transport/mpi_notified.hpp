// Notified communication by MPI-3's one-sided operations, passive target: put, flush, and the notification by
// an accumulate that replaces. A flush waits for the target's MPI, so a write takes a round trip; all of MPI
// is progressed in there.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/transport/arena_notified.hpp"
#include "algorithms/transport/mpi_window.hpp"

namespace papaya {

class MpiNotified final : public ArenaNotified {
 public:
  // Collective over `comm`, whose ranks are `members` of the window's communicator. Null, on all ranks alike,
  // if there is not enough memory.
  static std::unique_ptr<MpiNotified> create(MpiWindow& window, MPI_Comm comm, std::vector<int> members,
                                             const SegmentShape& shape) noexcept;
  // The same in parts, for who must not wait. This rank's share, null if there is no memory; then connect() with everybody's
  // offset(), gathered after all have offered.
  static std::unique_ptr<MpiNotified> offer(MpiWindow& window, std::vector<int> members, const SegmentShape& shape);

  void write_notify(int peer, std::size_t offset, const void* source, std::size_t bytes, int id,
                    std::uint64_t value) noexcept override;
  void progress() noexcept override;

 private:
  MpiNotified(MpiWindow& window, std::vector<int> members, const SegmentShape& shape);

  MpiWindow& window_;
  const std::vector<int> members_;  // ranks in the window
};

}  // namespace papaya
