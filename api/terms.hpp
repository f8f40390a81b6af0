// What the ranks of a collective agree on before it is made, in one exchange: what rank 0 decides for all, what has to
// be the same on all, and what holds only if it does on every rank.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "api/process.hpp"

namespace papaya::weak {

class Terms {
 public:
  // Rank 0's count.
  Birth birth{};
  std::uint64_t node_size = 0;
  std::string transport;           // of up to 7 characters
  std::uint64_t shared_bytes = 0;  // that may be taken in /dev/shm
  bool has_segment = false;        // rank 0 has made one, of birth.name()

  // True if they are on all ranks.
  bool is_good = true;      // no rank has found an error
  bool has_started = true;  // start() has been called
  bool has_ucx = false;     // the process uses it already
  bool is_same_version = true;
  bool is_same_node = true;

  // One of each rank's; afterwards the least and the greatest of all.
  struct Range {
    std::int64_t lowest;
    std::int64_t highest;
  };
  static constexpr std::size_t most_facts = 20;
  std::span<const Range> facts() const noexcept { return {facts_.data(), count_}; }
  void put(std::int64_t fact) noexcept { facts_[count_++] = {fact, fact}; }

  // Collective, once. `node`: number_of_node().
  void agree(MPI_Comm comm, std::size_t node);

 private:
  std::array<Range, most_facts> facts_{};
  std::size_t count_ = 0;
};

}  // namespace papaya::weak
