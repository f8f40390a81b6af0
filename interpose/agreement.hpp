// How the ranks of a communicator tell each other what they need for the set-up of a plan. A call that waits for all
// ranks does it at once, by MPI's blocking collectives on the program's communicator: nonblocking ones there would use
// up tags (copy_communicator.cpp says why). A nonblocking call begins each exchange on papaya's copy and asks for its
// end. Either way it is awaited in the coroutine that sets up.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "algorithms/steps.hpp"
#include "algorithms/transport/ucx/ucx_window.hpp"

namespace papaya {

class Agreement {
 public:
  enum class Way { waiting, asking };
  // While asking: other ranks may need this one's UCX, if there is one, which MPI does not move on.
  Agreement(MPI_Comm comm, Way way, UcxWindow& ucx) noexcept : comm_(comm), way_(way), ucx_(ucx) {}
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;

 private:
  auto ended() noexcept {
    return until([this] { return is_ended(); });
  }

 public:
  // What is passed stays as it is until the exchange has ended.
  auto from_first(void* data, int bytes) noexcept {
    begin_from_first(data, bytes);
    return ended();
  }
  auto least(const int& mine, int& all) noexcept {
    begin_least(mine, all);
    return ended();
  }
  // The same while ranks may still be connecting to this one: asks, whatever the way.
  auto least_while_connecting(const int& mine, int& all) noexcept {
    begin_least_while_connecting(mine, all);
    return ended();
  }
  auto gather(const std::int64_t& mine, std::int64_t* all) noexcept {
    begin_gather(mine, all);
    return ended();
  }

 private:
  void begin_from_first(void* data, int bytes) noexcept;
  void begin_least(const int& mine, int& all) noexcept;
  void begin_least_while_connecting(const int& mine, int& all) noexcept;
  void begin_gather(const std::int64_t& mine, std::int64_t* all) noexcept;
  bool is_ended() noexcept;

  const MPI_Comm comm_;
  const Way way_;
  UcxWindow& ucx_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace papaya
