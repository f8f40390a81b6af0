// What the tests against PMPI count and how they complain.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#if defined(MPICH)
inline constexpr bool is_mpich = true;  // some of its own bugs have to be gone around
#else
inline constexpr bool is_mpich = false;
#endif

inline int world_rank = 0;
inline std::atomic<long> comparisons{0};
inline std::atomic<long> mismatches{0};

inline void report(const char* what, const std::string& detail) {
  if (++mismatches <= 20) std::fprintf(stderr, "rank %d: %s: %s\n", world_rank, what, detail.c_str());
}

// Across nodes papaya sets up what ranks may leave early in a call that all wait in, for messages of the sizes before
// it.
inline void meet(MPI_Comm comm) {
  static const bool is_across = std::getenv("PAPAYA_NODE_SIZE") != nullptr;
  if (is_across) MPI_Barrier(comm);
}
