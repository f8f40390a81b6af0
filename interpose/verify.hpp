// PAPAYA_VERIFY: a replaced call runs natively as well, and the results are compared.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "interpose/dispatch.hpp"

namespace papaya {

class Verification {
 public:
  // Collective: runs the native call on a copy of the operands, before they are overwritten.
  Verification(const Arguments& arguments, const Communicator& state, const Reduction& reduction) noexcept;

  // Counts the comparison, and a mismatch if there is one. Floating-point results of reductions may differ in
  // rounding, since MPI may reduce in another order: up to 1e-4 of the value for float, 1e-10 for double.
  void compare() noexcept;

 private:
  const Arguments& arguments_;
  const Reduction& reduction_;
  const MPI_Comm comm_;
  std::size_t elements_ = 0;         // of `type` in the receive buffer
  std::vector<std::byte> expected_;  // contiguous
  bool done_ = false;
};

}  // namespace papaya
