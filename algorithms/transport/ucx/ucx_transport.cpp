#include "algorithms/transport/ucx/ucx_transport.hpp"

#include "algorithms/transport/ucx/ucx_notified.hpp"

namespace papaya {

std::unique_ptr<UcxTransport> UcxTransport::open(MPI_Comm world, std::size_t bytes, const char* folder,
                                                 std::string& why, OnFailure on_failure,
                                                 UcxEnvironment environment) noexcept {
  auto self = std::make_unique<UcxTransport>();
  if (!self->window_.create(world, bytes, folder, why, on_failure, environment)) return nullptr;
  return self;
}

std::unique_ptr<ArenaNotified> UcxTransport::offer(const std::vector<int>& members, wait::Policy& policy,
                                                   const SegmentShape& shape) {
  return UcxNotified::offer(window_, members, policy, shape);
}

}  // namespace papaya
