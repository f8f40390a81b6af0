// Contiguous host memory for a call whose buffers are not: derived types are packed, and, where a rank cannot
// keep the others out of the call, a device's memory is copied to the host.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <span>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "interpose/scratch.hpp"

namespace papaya {

// The lowest byte of `count` elements relative to the buffer, and how many bytes they span.
struct Span {
  MPI_Aint lowest;
  std::size_t bytes;
};
Span span_of(MPI_Datatype type, std::size_t count) noexcept;

// `count` elements of `type` at `buffer`, contiguous at bytes(). Nothing is copied where they are so already.
// The padding of predefined pairs is the program's: where `element_bytes` counts it, pairs lie at bytes()
// with padding of their own.
class Staging {
 public:
  enum class Use : unsigned char { read = 1, write = 2, both = 3 };

  Staging() = default;
  Staging(const void* buffer, std::size_t count, MPI_Datatype type, std::size_t element_bytes, Use use,
          bool on_device) noexcept;
  std::byte* bytes() const noexcept { return bytes_; }
  // There was not enough memory, so many bytes: bytes() is null. 0: all is well.
  std::size_t lacks() const noexcept { return lacks_; }
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
  Scratch image_;  // a device's memory on the host
  Scratch packed_;
  std::byte* bytes_ = nullptr;
  std::size_t lacks_ = 0;
};

// The same for the blocks of a v-form, one for each rank.
class StagedBlocks {
 public:
  // `blocks` says where they lie, and afterwards where they lie contiguous. What the block of rank `read_too` holds is
  // read as well; -1: of none. Returns the bytes of memory that were not to be had, 0 when all is there.
  std::size_t stage(std::span<Block> blocks, MPI_Datatype type, std::size_t element_bytes, Staging::Use use,
                    int read_too, bool on_device);
  // What has come, by the sizes in `blocks`: a program may leave more room.
  void write_back(std::span<const Block> blocks) noexcept;

 private:
  std::vector<Staging> staged_;
  std::size_t element_bytes_ = 1;
};

}  // namespace papaya
