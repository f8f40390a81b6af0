// What papaya needs to know of MPI's datatypes, and their elements to and from contiguous bytes.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "algorithms/kernels/reduce.hpp"

namespace papaya {

// A communicator of papaya's, on which errors return, for what is packed: with the program's a failure would be one for
// its error handler. In MPI_Init.
void pack_on(MPI_Comm comm) noexcept;

// A predefined datatype that kernels take.
struct TypeRow {
  MPI_Datatype type;
  kernels::ElementType element;
  std::uint32_t bytes;      // as it lies in memory
  std::uint32_t signature;  // MPI_Type_size: pairs without their padding
  bool fortran_integer;     // MPI defines the logical operations on C's integers and Fortran's LOGICAL only
};

// Null for all others.
const TypeRow* find_row(MPI_Datatype type) noexcept;

// The kernel type of a predefined datatype; false for all others.
bool element_type_of(MPI_Datatype type, kernels::ElementType& element) noexcept;

// True if the handle may be given to MPI's inquiry functions: MPI reports what is wrong with it itself, in
// the name of the function the user called.
bool is_plausible(MPI_Datatype type) noexcept;

// A derived type that is not committed is an error, which MPI reports itself.
bool is_committed(MPI_Datatype type) noexcept;

// A predefined datatype: its handle never means another.
bool is_named(MPI_Datatype type) noexcept;

// What MPI would take in a call.
inline bool is_usable(MPI_Datatype type) noexcept {
  return is_named(type) || is_committed(type);
}

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
