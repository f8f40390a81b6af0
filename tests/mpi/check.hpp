// What the tests against PMPI count and how they complain.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdio>
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
