// What reductions are given and what their results are compared with.
#pragma once

#include <mpi.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/mpi/types.hpp"

// Storage between guard bytes.
class Operand {
 public:
  Operand(std::size_t bytes, std::size_t shift) : bytes_(bytes) {
    storage_.assign(bytes + 64 + shift, 0xa5);
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    at_ = storage_.data() + 16 + (16 - address % 16) % 16 + shift;
  }
  Operand(Operand&&) = default;  // the storage stays where it is
  unsigned char* at() { return at_; }
  bool is_intact() const {
    for (const unsigned char* byte = storage_.data(); byte < storage_.data() + storage_.size(); ++byte)
      if ((byte < at_ || byte >= at_ + bytes_) && *byte != 0xa5) return false;
    return true;
  }

 private:
  std::vector<unsigned char> storage_;
  unsigned char* at_;
  std::size_t bytes_;
};

// What MPI_Reduce_local makes of the operands of all ranks, the lower ranks on the left. fill(at, rank) writes one.
template <class Fill>
Operand reduced(int ranks, const Type& type, const Operation& operation, int count, Fill fill) {
  const std::size_t bytes = static_cast<std::size_t>(count) * type.bytes;
  Operand result(bytes, 0);
  Operand other(bytes, 0);
  fill(result.at(), ranks - 1);
  for (int rank = ranks - 2; rank >= 0; --rank) {
    fill(other.at(), rank);
    PMPI_Reduce_local(other.at(), result.at(), count, type.type, operation.op);
  }
  return result;
}

// The first element that is another one, -1: none. `result` need not be aligned.
inline int first_difference(const Type& type, const unsigned char* result, const unsigned char* expected, int count) {
  for (int i = 0; i < count; ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * type.bytes;
    std::max_align_t aligned[2];
    std::memcpy(aligned, result + at, type.bytes);
    if (!type.equal(aligned, expected + at)) return i;
  }
  return -1;
}

// Values of very different size: sums of them depend on the order of additions. In rank order they have the same bits
// in every run, whoever comes late.
inline double value_of_any_size(std::mt19937_64& random) {
  const double mantissa = static_cast<double>(random() >> 12) / 1e15 - 2;
  return std::ldexp(mantissa, static_cast<int>(random() % 80) - 40);
}
inline bool is_in_rank_order() {
  const char* const order = std::getenv("PAPAYA_ORDER");
  return order == nullptr || std::string(order) != "arrival";
}
