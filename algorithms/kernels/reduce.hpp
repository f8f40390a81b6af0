// Reduction kernels: out[i] = left[i] op right[i] for MPI's predefined operations on the C types that matter.
#pragma once

#include <cstdint>

#include "algorithms/datatype.hpp"

namespace papaya::kernels {

enum class ElementType : std::uint8_t {
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  f32,
  f64,
  f80,  // long double, whatever its width
  c32,  // complex of two floats
  c64,
  c80,
  boolean,
  byte,
  f32_int,  // the pairs of MPI_MINLOC and MPI_MAXLOC, laid out as C structs with their padding
  f64_int,
  long_int,
  int_int,
  short_int,
  f80_int,
  f32_f32,  // Fortran's pairs of one type
  f64_f64,
  logical,  // Fortran LOGICAL: an integer that only the logical operations take
  f16,      // IEEE binary16, computed in float and rounded
  bf16,     // the upper half of a float
};

enum class Operation : std::uint8_t { sum, prod, min, max, land, lor, lxor, band, bor, bxor, minloc, maxloc };

// The kernel, or nullptr where MPI defines no such operation on the type. Operands may lie at any address;
// the output may be either of them. Compiled for several instruction sets, chosen once; all give the same
// bits.
Reduction::Combine find(ElementType type, Operation operation) noexcept;

std::size_t size_of(ElementType type) noexcept;

}  // namespace papaya::kernels
