// From MPI's datatype and operation to the Reduction that algorithms work with, and to contiguous bytes.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "algorithms/datatype.hpp"
#include "algorithms/kernels/reduce.hpp"

namespace papaya {

// Where a Reduction that is not a kernel keeps what it needs. Lives as long as the call.
struct ReductionContext {
  MPI_Datatype type;
  MPI_Op op;
  MPI_Aint extent;
  MPI_Aint true_lower_bound;
  MPI_Aint true_extent;
};

// The kernel type of a predefined datatype; false for all others.
bool element_type_of(MPI_Datatype type, kernels::ElementType& element) noexcept;

// True if the handle may be given to MPI's inquiry functions: MPI reports what is wrong with it itself, in
// the name of the function the user called.
bool is_plausible(MPI_Datatype type) noexcept;

// Describes `type` and `op`. False if MPI would call the combination an error, or if it cannot be done; then
// the call goes native. Equal on all ranks, because MPI wants the same operation and matching types
// everywhere.
bool describe(MPI_Datatype type, MPI_Op op, Reduction& reduction, ReductionContext& context) noexcept;

// The same for operations.
bool is_plausible_operation(MPI_Op op) noexcept;

// A derived type that is not committed is an error, which MPI reports itself.
bool is_committed(MPI_Datatype type) noexcept;

// A predefined datatype: its handle never means another.
bool is_named(MPI_Datatype type) noexcept;

// A datatype that MPI_Type_get_contents gave: the caller's to free, but for predefined ones.
void release_part(MPI_Datatype& type) noexcept;

// MPI_Type_size of a handle that may be invalid: -1 if there is no telling. Pairs count without their
// padding.
std::int64_t type_bytes_of(MPI_Datatype type) noexcept;

// True if elements lie in memory as MPI_Pack would pack them: without holes and in order.
bool is_dense(MPI_Datatype type) noexcept;

// A predefined pair with padding between or after its parts, as it lies in memory, which is how kernels take
// it. The padding may hold something of the program's, or lie beyond its memory.
struct PairParts {
  std::size_t bytes = 0;  // with the padding; 0: it is none
  std::size_t value_bytes = 0;
  std::size_t index_at = 0;
  std::size_t index_bytes = 0;
};
// Of elements of `element_bytes`: only where these count the padding.
PairParts padded_pair(MPI_Datatype type, std::size_t element_bytes) noexcept;
// Their parts alone.
void copy_pairs(const PairParts& pair, const void* from, void* to, std::size_t count) noexcept;

// `count` elements at `buffer` to and from contiguous bytes; `element_bytes` is the type's size. At most 1
// GiB an element.
void pack(const void* buffer, std::size_t count, MPI_Datatype type, std::size_t element_bytes, void* packed) noexcept;
void unpack(const void* packed, void* buffer, std::size_t count, MPI_Datatype type, std::size_t element_bytes) noexcept;

// Signature bytes of one element, -1 if there is no telling. Predefined pairs count without their padding.
std::int64_t element_bytes_of(MPI_Datatype type) noexcept;

}  // namespace papaya
