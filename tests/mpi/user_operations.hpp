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

// The type for it: blocks at 0 and at -8 bytes, extent 24. A negative lower bound and holes.
inline MPI_Datatype spread_type() {
  const int lengths[] = {1, 1};
  const MPI_Aint displacements[] = {0, -8};
  const MPI_Datatype parts[] = {MPI_UINT16_T, MPI_UINT16_T};
  MPI_Datatype bare;
  MPI_Datatype spread;
  MPI_Type_create_struct(2, lengths, displacements, parts, &bare);
  MPI_Type_create_resized(bare, -8, 24, &spread);
  MPI_Type_free(&bare);
  MPI_Type_commit(&spread);
  return spread;
}

struct Map {
  std::uint16_t a, b;
};
// The maps of all ranks composed, the lower ranks on the left.
template <class MapOf>
Map composed(int ranks, MapOf map_of) {
  Map all = map_of(ranks - 1);
  for (int rank = ranks - 2; rank >= 0; --rank) {
    Map one = map_of(rank);
    int length = 1;
    compose(&one, &all, &length, nullptr);
  }
  return all;
}

// Commutative, on ints or on a type of ints.
inline void add_ints(void* in, void* inout, int* length, MPI_Datatype* type) {
  int bytes = 0;
  PMPI_Type_size(*type, &bytes);
  const int n = *length * bytes / static_cast<int>(sizeof(int));
  for (int i = 0; i < n; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

// On a type of absolute addresses: the operand is where the type says, relative to the pointer given.
inline MPI_Aint absolute_place = 0;
inline void add_absolute(void* in, void* inout, int*, MPI_Datatype*) {
  const auto* x = reinterpret_cast<std::uint16_t*>(static_cast<char*>(in) + absolute_place);
  auto* y = reinterpret_cast<std::uint16_t*>(static_cast<char*>(inout) + absolute_place);
  y[0] = static_cast<std::uint16_t>(x[0] + y[0]);
  y[-4] = static_cast<std::uint16_t>(x[-4] + y[-4]);
}
