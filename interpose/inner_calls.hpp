// Calls of MPI that papaya makes to pack, unpack and combine.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>

namespace papaya::oddities {

inline constinit std::atomic<std::uint64_t> failed_inner_calls{0};  // MPI_Pack, MPI_Unpack, MPI_Reduce_local

// A call of MPI that cannot fail with arguments the user's own call would not have failed with, and that
// comes too late to go native. Should one fail all the same, it is reported at the end.
inline void must_succeed(int code) noexcept {
  if (code != MPI_SUCCESS) failed_inner_calls.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace papaya::oddities
