// The tools that take MPI's functions in this process beside papaya. Symbols are looked up in the program, then in what
// is preloaded, then in the program's libraries; a tool that comes before libpapaya.so in this order is in front of it,
// one that comes later is behind it.
#pragma once

#include "interpose/preload_module.hpp"

namespace papaya::preload {

// What papaya's MPI_NAME hands a call on to: the next tool behind papaya that has the function, else
// MPI's own, which differs from `native`, its PMPI_NAME, where MPI has QMPI tools inside.
void* next_of(const char* name, void* native, const papaya_range& mpi);

// Whether a tool in front of papaya, which lies in `own`, takes MPI_NAME: then its PMPI_NAME is how the program's call
// gets to papaya.
bool is_taken(const char* name, const papaya_range& own);

// Whose call of PMPI_X it is, by the return address. A tool may leave by a jump; then it is the address of who called
// it.
enum class Origin {
  program,  // or its libraries, or tools in front of papaya
  fortran,  // a Fortran binding
  behind,   // tools behind papaya, and MPI's parts
};
Origin origin_of(const void* caller);

}  // namespace papaya::preload
