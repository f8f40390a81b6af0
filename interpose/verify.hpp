// PAPAYA_VERIFY: a replaced call runs natively as well, and the results are compared.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "interpose/call.hpp"

namespace papaya {

class Verification {
 public:
  // Collective: runs the native call on a copy of the operands, before they are overwritten.
  Verification(const Arguments& arguments, const Communicator& state, const Reduction& reduction,
               bool on_device) noexcept;

  // Counts the comparison, and a mismatch if there is one. Floating-point results of reductions may differ in rounding,
  // since MPI may reduce in another order: by 1e-4 for float and 1e-10 for double, of the result or, for sums, of what
  // the operands may add up to. What a user's operation makes of a mix of types is compared only where it must be equal
  // to the bit.
  void compare() noexcept;

 private:
  void exchange_blocks(const Communicator& state) noexcept;

  const Arguments& arguments_;
  const Reduction& reduction_;
  const bool on_device_;
  const int ranks_;
  double magnitude_ = 0;             // of what the operands may add up to
  std::size_t elements_ = 0;         // of `type` in the receive buffer
  std::vector<std::byte> expected_;  // contiguous
  bool done_ = false;
};

// A call by `run`, of which PAPAYA_VERIFY, `every`, may want to know whether its result is right.
template <class Run>
bool run_verified(std::uint64_t every, const Arguments& a, Communicator& state, const Reduction& reduction,
                  bool on_device, Run&& run) noexcept {
  if (every == 0 || ++state.replaced % every != 0) return run();
  Verification verification(a, state, reduction, on_device);
  if (!run()) return false;
  verification.compare();
  return true;
}

}  // namespace papaya
