// Operations as users define them.
#pragma once

#include <mpi.h>

#include <cstdint>

// Not commutative: composition of affine maps modulo 2^16, (a, b) after (c, d).
inline void compose(void* in, void* inout, int* length, MPI_Datatype*) {
  auto* x = static_cast<std::uint16_t*>(in);
  auto* y = static_cast<std::uint16_t*>(inout);
  for (int i = 0; i < *length; ++i, x += 2, y += 2) {
    const std::uint16_t a = x[0], b = x[1], c = y[0], d = y[1];
    y[0] = static_cast<std::uint16_t>(a * c);
    y[1] = static_cast<std::uint16_t>(a * d + b);
  }
}

// The same on a derived type with holes, where the second number lies before the first: what a pointer to it
// looks like depends on the type's layout.
inline void compose_spread(void* in, void* inout, int* length, MPI_Datatype* type) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(*type, &lower, &extent);
  for (int i = 0; i < *length; ++i) {
    auto* x = reinterpret_cast<std::uint16_t*>(static_cast<char*>(in) + i * extent);
    auto* y = reinterpret_cast<std::uint16_t*>(static_cast<char*>(inout) + i * extent);
    const std::uint16_t a = x[0], b = x[-4], c = y[0], d = y[-4];
    y[0] = static_cast<std::uint16_t>(a * c);
    y[-4] = static_cast<std::uint16_t>(a * d + b);
  }
}

// On a type of absolute addresses: the operand is where the type says, relative to the pointer given.
inline MPI_Aint absolute_place = 0;
inline void add_absolute(void* in, void* inout, int*, MPI_Datatype*) {
  const auto* x = reinterpret_cast<std::uint16_t*>(static_cast<char*>(in) + absolute_place);
  auto* y = reinterpret_cast<std::uint16_t*>(static_cast<char*>(inout) + absolute_place);
  y[0] = static_cast<std::uint16_t>(x[0] + y[0]);
  y[-4] = static_cast<std::uint16_t>(x[-4] + y[-4]);
}
