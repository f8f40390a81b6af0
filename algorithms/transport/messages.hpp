// Messages among the ranks of a team, for who is too far ahead of the others to leave its data where they take them
// from. They go from rank to rank in order.
#pragma once

#include <cstddef>

namespace papaya {

class Messages {
 public:
  virtual ~Messages() = default;
  // As MPI_Send: returns when `data` may be changed, for messages that MPI sends eagerly before they are received.
  virtual void send(int to, const void* data, std::size_t bytes) noexcept = 0;
  virtual void receive(int from, void* data, std::size_t bytes) noexcept = 0;

  // The same for who must not wait. `data` stays as it is until are_sent() says so of all that has been begun.
  virtual void begin_send(int to, const void* data, std::size_t bytes) noexcept = 0;
  virtual bool are_sent() noexcept = 0;
  // Whether the next message of `from` has come, whose bytes, at most `room`, are then at `data`. Who has once asked
  // asks again with the same place until it has.
  virtual bool has_received(int from, void* data, std::size_t room, std::size_t& bytes) noexcept = 0;
};

}  // namespace papaya
