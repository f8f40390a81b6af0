// PAPAYA_VERIFY of an approximate call: how far its result is from MPI's.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "interpose/call.hpp"

namespace papaya::approx {

class ExactResult {
 public:
  ExactResult() = default;
  // Collective: MPI's own call on a copy of the operands, before they are overwritten.
  ExactResult(const Arguments& arguments, const Communicator& state, const Reduction& reduction, bool on_device);

  // The Euclidean norm of what the result differs by, of that of MPI's result. False where this rank has no result, or
  // one of no numbers.
  bool error_of(const Arguments& arguments, const Reduction& reduction, bool on_device, double& error) const;

 private:
  std::vector<std::byte> bytes_;  // packed; empty: there is none
};

}  // namespace papaya::approx
