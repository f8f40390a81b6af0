#include "algorithms/transport/mpi/mpi_transport.hpp"

#include "algorithms/transport/mpi/mpi_notified.hpp"

namespace papaya {

std::unique_ptr<MpiTransport> MpiTransport::open(MPI_Comm comm, std::size_t bytes, bool is_own,
                                                 OnFailure on_failure) noexcept {
  auto self = std::make_unique<MpiTransport>();
  if (!self->messages_.create(comm, bytes, is_own, on_failure)) return nullptr;
  return self;
}

std::unique_ptr<ArenaNotified> MpiTransport::offer(const std::vector<int>& members, wait::Policy& policy,
                                                   const SegmentShape& shape) {
  return MpiNotified::offer(messages_, members, policy, shape);
}

}  // namespace papaya
