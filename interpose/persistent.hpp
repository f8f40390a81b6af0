// Persistent collectives: which requests are theirs, so that each start is recorded as a call. Of the communicator only
// its identity is kept: it may be freed before the requests are.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>

#include "base/collective.hpp"
#include "interpose/dispatch.hpp"

namespace papaya::persistent {

// How ranks know it as the same one: by the call that made it, which MPI orders on the communicator. They may start
// several in different orders.
struct Operation {
  Collective collective{};
  std::uint64_t communicator = 0;  // 0: not known
  std::uint64_t init = 0;          // that call's number
  std::uint64_t starts = 0;        // so far
  std::uint64_t bytes = 0;
  int root = -1;
};

void add(MPI_Request request, const Operation& operation) noexcept;
// The request is about to be freed.
void forget(const MPI_Request* request) noexcept;

// The call that makes an operation. `describe` and `native` as in collective().
template <class Describe, class Native>
int initialise(Collective which, MPI_Comm comm, const void* site, Describe&& describe, Native&& native,
               const MPI_Request* request) {
  Operation made;
  const auto note = [&](const Communicator& state, const CallFacts& facts, const Outcome&) noexcept {
    made = {.collective = which, .communicator = state.id, .init = facts.call};
    if (facts.arrival != nullptr) {
      made.bytes = facts.arrival->bytes;
      made.root = facts.arrival->root;
    }
    return false;
  };
  const int code = collective(which, Form::persistent, comm, site, describe, note, native);
  if (code == MPI_SUCCESS && made.communicator != 0) add(*request, made);
  return code;
}

// MPI_Start and MPI_Startall: `native` on these requests, of which some may be of persistent collectives.
int start(int count, const MPI_Request* requests, const void* site, int (*native)(int count, MPI_Request* requests));

}  // namespace papaya::persistent
