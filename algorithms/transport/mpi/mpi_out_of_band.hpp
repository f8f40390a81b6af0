// Out-of-band collectives by MPI's: across nodes, and where the launcher does not tell which ranks share one.
#pragma once

#include <mpi.h>

#include "algorithms/transport/out_of_band.hpp"

namespace papaya {

// Whether it ends well; asleep until then.
bool wait_asleep(MPI_Request& request) noexcept;

class MpiOutOfBand final : public OutOfBand {
 public:
  // The communicator stays its owner's.
  explicit MpiOutOfBand(MPI_Comm comm) noexcept;

  void meet() noexcept override;
  using OutOfBand::broadcast;
  using OutOfBand::gather;
  void broadcast(void* data, std::size_t bytes) noexcept override;
  void gather(const void* mine, std::size_t bytes, void* all) noexcept override;

 private:
  const MPI_Comm comm_;
};

}  // namespace papaya
