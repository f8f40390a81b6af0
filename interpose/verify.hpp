// PAPAYA_VERIFY: a replaced allreduce runs natively as well, and the results are compared.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "interpose/dispatch.hpp"

namespace papaya {

class Verification {
 public:
  // Collective: runs the native call on a copy of the operands, before they are overwritten.
  Verification(const AllreduceArguments& arguments, MPI_Comm comm, const Reduction& reduction) noexcept;

  // Counts the comparison, and a mismatch if there is one. Floating-point results may differ in rounding, since MPI may
  // reduce in another order: up to 1e-4 of the value for float, 1e-10 for double.
  void compare(const void* receive) noexcept;

 private:
  const AllreduceArguments& arguments_;
  const Reduction& reduction_;
  std::vector<std::byte> expected_;  // packed
  bool done_ = false;
};

}  // namespace papaya
