// Out-of-band collectives in memory that the ranks of a node share: a rank writes, sleeps until the last one has come,
// and reads. A message each way and context switches inside MPI, whose waits may spin, are what they save: with MPICH
// and 8 ranks on 2 cores one of MPI's takes 15 to 45 ms.
#pragma once

#include <cstddef>
#include <cstdint>

#include "algorithms/transport/out_of_band.hpp"

namespace papaya {

class SharedOutOfBand final : public OutOfBand {
 public:
  static constexpr std::size_t most_ranks = 1024;
  static constexpr std::size_t most_broadcast_bytes = 32768;  // at once: longer ones go in pieces

  // Of the memory; it begins zero, and at a multiple of 64.
  static constexpr std::size_t bytes_for(std::size_t ranks) noexcept { return header_bytes + 2 * bank_bytes(ranks); }

  // `progress` is called now and then while a rank waits.
  SharedOutOfBand(std::byte* memory, int rank, int ranks, void (*progress)()) noexcept
      : OutOfBand(rank, ranks), memory_(memory), progress_(progress) {}

  void meet() noexcept override;
  using OutOfBand::broadcast;
  using OutOfBand::gather;
  void broadcast(void* data, std::size_t bytes) noexcept override;
  void gather(const void* mine, std::size_t bytes, void* all) noexcept override;

 private:
  static constexpr std::size_t header_bytes = 128;
  static constexpr std::size_t bank_bytes(std::size_t ranks) noexcept {
    return most_broadcast_bytes + ranks * most_gathered_bytes;
  }
  struct Header;
  Header& header() const noexcept;
  std::byte* bank() const noexcept;

  std::byte* const memory_;
  void (*const progress_)();
  std::uint32_t met_ = 0;  // how often
};

}  // namespace papaya
