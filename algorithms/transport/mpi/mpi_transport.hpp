// Messages of MPI as the transport between nodes (mpi_messages.hpp).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "algorithms/transport/mpi/mpi_messages.hpp"
#include "algorithms/transport/transport.hpp"

namespace papaya {

class MpiTransport final : public Transport {
 public:
  // Collective over `comm`, whose error handler must return. `bytes` of memory for each rank. `is_own`: no other
  // messages go by it. Null, on all ranks alike, if there is no memory.
  static std::unique_ptr<MpiTransport> open(MPI_Comm comm, std::size_t bytes, bool is_own = false,
                                            OnFailure on_failure = OnFailure::end_job) noexcept;

  const char* name() const noexcept override { return "MPI's messages"; }
  Arena& arena() noexcept override { return messages_.arena(); }
  std::unique_ptr<ArenaNotified> offer(const std::vector<int>& members, wait::Policy& policy,
                                       const SegmentShape& shape) override;
  // After close() too: operations that MPI_Finalize has given up may still ask.
  void progress() noexcept override {
    if (messages_.exists()) messages_.progress();
  }
  bool is_lost(int member) noexcept override { return messages_.is_lost(member); }
  void lose(int member) noexcept override { messages_.lose(member); }
  void discard() noexcept override { messages_.discard(); }
  void close() noexcept override { messages_.free(); }

 private:
  MpiMessages messages_;
};

}  // namespace papaya
