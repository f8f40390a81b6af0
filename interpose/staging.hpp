// Contiguous host memory for a call whose buffers are not: derived types are packed, and, where a rank cannot
// keep the others out of the call, a device's memory is copied to the host.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>

namespace papaya {

// The lowest byte of `count` elements relative to the buffer, and how many bytes they span.
struct Span {
  MPI_Aint lowest;
  std::size_t bytes;
};
Span span_of(MPI_Datatype type, std::size_t count) noexcept;

// `count` elements of `type` at `buffer`, contiguous at bytes(). Nothing is copied where they are so already.
class Staging {
 public:
  enum class Use : unsigned char { read = 1, write = 2, both = 3 };

  Staging() = default;
  Staging(const void* buffer, std::size_t count, MPI_Datatype type, std::size_t element_bytes, Use use, bool on_device);
  std::byte* bytes() const noexcept { return bytes_; }
  // Brings what was written back to the user's buffer.
  void write_back() noexcept { write_back(count_); }
  // The first `count` elements alone.
  void write_back(std::size_t count) noexcept;

 private:
  void* buffer_ = nullptr;
  std::size_t count_ = 0;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  std::size_t element_bytes_ = 0;
  Use use_ = Use::read;
  Span span_{};
  std::unique_ptr<std::byte[]> image_;  // a device's memory on the host
  std::unique_ptr<std::byte[]> packed_;
  std::byte* bytes_ = nullptr;
};

}  // namespace papaya
