// From MPI's datatype and operation to the Reduction that algorithms work with.
#pragma once

#include <mpi.h>

#include "algorithms/datatype.hpp"
#include "interpose/mpi_types.hpp"

namespace papaya {

// Where a Reduction that is not a kernel keeps what it needs. Lives as long as the call.
struct ReductionContext {
  MPI_Datatype type;
  MPI_Op op;
  MPI_Aint extent;
  MPI_Aint true_lower_bound;
  MPI_Aint true_extent;
};

// Describes `type` and `op`. False if MPI would call the combination an error, or if it cannot be done; then
// the call goes native. Equal on all ranks, because MPI wants the same operation and matching types
// everywhere.
bool describe(MPI_Datatype type, MPI_Op op, Reduction& reduction, ReductionContext& context) noexcept;

// The kernel operation of a predefined one; false for all others.
bool operation_of(MPI_Op op, kernels::Operation& operation) noexcept;

// True if the handle may be given to MPI's inquiry functions.
bool is_plausible_operation(MPI_Op op) noexcept;

}  // namespace papaya
