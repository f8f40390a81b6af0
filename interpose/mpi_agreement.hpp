// Agreement by MPI. A call that waits for all ranks does it at once, by MPI's blocking collectives on the program's
// communicator: nonblocking ones there would use up tags (copy_communicator.cpp says why). A nonblocking call begins
// each exchange on papaya's copy and asks for its end.
#pragma once

#include <mpi.h>

#include "algorithms/transport/transport.hpp"
#include "interpose/agreement.hpp"

namespace papaya {

class MpiAgreement final : public Agreement {
 public:
  enum class Way { waiting, asking };
  // While asking: other ranks may need this one's `transport`, if there is one, which MPI does not move on. `world` is
  // a communicator of papaya's that spans the job.
  MpiAgreement(MPI_Comm comm, Way way, Transport* transport, MPI_Comm world) noexcept
      : comm_(comm), way_(way), transport_(transport), world_(world) {}

 private:
  void begin_from_first(void* data, int bytes) noexcept override;
  void begin_least(const int& mine, int& all) noexcept override;
  void begin_least_while_connecting(const int& mine, int& all) noexcept override;  // asks, whatever the way
  void begin_gather(const std::int64_t& mine, std::int64_t* all) noexcept override;
  bool is_ended() noexcept override;
  void pause() noexcept override;

  const MPI_Comm comm_;
  const Way way_;
  Transport* const transport_;
  const MPI_Comm world_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace papaya
