// Processes that can read a run together, such as one of each node of a job in MPI_Finalize.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace papaya::report {

// As one of them sees them. They are numbered from 0, which asks the others, and has the result.
class Readers {
 public:
  Readers() = default;
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;
  virtual ~Readers() = default;

  virtual std::size_t number() const = 0;
  virtual std::size_t all() const = 0;
  // Messages arrive in the order in which they were sent; receive() waits for the next one from that process. They are
  // larger than none. An empty one stands for one for which there is no memory here. Neither throws.
  virtual void send(std::size_t to, std::span<const std::byte> message) noexcept = 0;
  virtual std::vector<std::byte> receive(std::size_t from) noexcept = 0;
  // Of number 0, once: asks those below `count` to read, and tells the others that they need not.
  virtual void ask(std::size_t count) noexcept = 0;
  // Of another one, once: what number 0 has asked. Waits for that.
  virtual std::size_t asked() noexcept = 0;
};

}  // namespace papaya::report
