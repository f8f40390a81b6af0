// PAPAYA_VERIFY: a replaced call runs natively as well, and the results are compared. An algorithm whose result differs
// is dropped (verdicts.hpp), and the call returns MPI's.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "interpose/verdicts.hpp"

namespace papaya {

class Verification {
 public:
  // Collective: runs the native call on a copy of the operands, before they are overwritten.
  Verification(const Arguments& arguments, const Communicator& state, const Reduction& reduction,
               bool on_device) noexcept;

  // Counts the comparison, and a mismatch if there is one. Floating-point results of reductions may differ in rounding,
  // since MPI may reduce in another order: see results.hpp, where `magnitude` is, for sums, what the operands may add
  // up to. What a user's operation makes of a mix of types is compared only where it must be equal to the bit.
  std::optional<verdicts::Found> compare() noexcept;

  // Puts MPI's result where the algorithm's is.
  void restore() noexcept;

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

// A call by `run`, of which PAPAYA_VERIFY may want to know whether its result is right. `algorithm`: the plan's.
template <class Run>
bool run_verified(const CallFacts& facts, const Arguments& a, Communicator& state, const Descriptor& algorithm,
                  const Reduction& reduction, bool on_device, Run&& run) noexcept {
  const std::uint64_t every = facts.job.verify_every;
  if (every == 0 || ++state.replaced % every != 0) return run();
  Verification verification(a, state, reduction, on_device);
  if (!run()) return false;
  if (verdicts::pass(state, algorithm, a.collective, verification.compare(), facts)) verification.restore();
  return true;
}

}  // namespace papaya
