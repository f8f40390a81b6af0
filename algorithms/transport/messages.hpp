// Messages among the ranks of a team, for who is too far ahead of the others to leave its data in shared memory. They go
// from rank to rank in order.
#pragma once

#include <cstddef>

namespace papaya {

class Messages {
 public:
  virtual ~Messages() = default;
  // As MPI_Send: returns when `data` may be changed, for messages that MPI sends eagerly before they are received.
  virtual void send(int to, const void* data, std::size_t bytes) noexcept = 0;
  virtual void receive(int from, void* data, std::size_t bytes) noexcept = 0;
};

}  // namespace papaya
