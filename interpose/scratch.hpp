// Memory for the length of a call, as it comes. A large one is only promised: its pages exist once they are touched, so
// what a datatype spans costs nothing, only what it uses.
#pragma once

#include <cstddef>
#include <utility>

namespace papaya {

class Scratch {
 public:
  Scratch() = default;
  // data() is null if there is none to be had.
  explicit Scratch(std::size_t bytes) noexcept;
  ~Scratch();
  Scratch(Scratch&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::byte* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// There is no memory for what only this rank needs, and the others cannot be told any more: ends the job with a
// sentence, as MPI would with the error MPI_ERR_NO_MEM.
[[noreturn]] void end_for_lack_of_memory(std::size_t bytes) noexcept;

}  // namespace papaya
