// One nonblocking call: what the program passed, where its data lies until the end, and the request the program has.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "algorithms/steps.hpp"
#include "interpose/call.hpp"
#include "interpose/plan.hpp"
#include "interpose/staging.hpp"

namespace papaya::nonblocking {

// Owned by its queue until it has ended.
struct Operation {
  Plan& plan;
  Arguments arguments;
  Reduction reduction;
  Operands operands{};
  // The program may free a derived type before the end: one of papaya's own made of it, and what is packed.
  MPI_Datatype type = MPI_DATATYPE_NULL;
  Staging send;
  Staging receive;
  MPI_Request request = MPI_REQUEST_NULL;  // the program's
  int* code = nullptr;                     // for the request: MPI's error of a native run
  Steps steps;
  MPI_Comm comm;       // the program's
  std::uint64_t call;  // its number there
  bool is_stall_reported = false;

  Operation(Plan& p, const Arguments& a, const Reduction& r, MPI_Comm c, std::uint64_t number)
      : plan(p), arguments(a), reduction(r), comm(c), call(number) {}
  ~Operation() {
    if (type != MPI_DATATYPE_NULL) PMPI_Type_free(&type);
  }
  void stage(bool is_root, std::size_t bytes, const CallFacts& facts) noexcept;
  int start_natively(MPI_Comm copy, MPI_Request* inner) noexcept;
};

}  // namespace papaya::nonblocking
