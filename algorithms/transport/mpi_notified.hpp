// Notified communication by MPI-3's one-sided operations, passive target: put, flush, and the notification by
// an accumulate that replaces. A flush waits for the target's MPI, so a write takes a round trip; the sender
// looks after its own notifications meanwhile, since all of MPI is progressed in there.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>

#include "algorithms/transport/notified.hpp"

namespace papaya {

class MpiNotified final : public Notified {
 public:
  // Collective over `comm`. Null, on all ranks alike, if this MPI cannot do it (no memory, or one-sided
  // operations that do not go with MPI_THREAD_MULTIPLE, say).
  static std::unique_ptr<MpiNotified> create(MPI_Comm comm, const SegmentShape& shape) noexcept;
  ~MpiNotified() override;  // collective too

  void write_notify(int peer, std::size_t offset, const void* source, std::size_t bytes, int id,
                    std::uint64_t value) noexcept override;
  void release_sources() noexcept override {}  // they are by the time write_notify returns
  std::uint64_t look(int id) noexcept override;
  std::uint64_t reset(int id) noexcept override;
  bool progress() noexcept override;

 private:
  MpiNotified() = default;

  MPI_Comm comm_ = MPI_COMM_NULL;  // papaya's own, with errors returned
  MPI_Win window_ = MPI_WIN_NULL;
  int notifications_ = 0;
  bool failed_ = false;
  wait::Doorbell own_bell_{};
  std::unique_ptr<std::uint64_t[]> reset_at_;  // by id: the number that look() no longer tells
};

}  // namespace papaya
