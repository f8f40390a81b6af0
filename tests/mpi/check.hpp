// What the tests against PMPI count and how they complain.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#if defined(MPICH)
inline constexpr bool is_mpich_5 = MPICH_NUMVERSION >= 50000000;
inline constexpr bool is_mpich = true;  // some of its own bugs have to be gone around
#else
inline constexpr bool is_mpich_5 = false;
inline constexpr bool is_mpich = false;
#endif

inline int world_rank = 0;
inline std::atomic<long> comparisons{0};
inline std::atomic<long> mismatches{0};

inline void report(const char* what, const std::string& detail) {
  if (++mismatches <= 20) std::fprintf(stderr, "rank %d: %s: %s\n", world_rank, what, detail.c_str());
}

// The result of all ranks, before MPI_Finalize: how many comparisons there were; 0 if one of them failed.
inline long conclude() {
  int size = 0;
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  long total[2] = {comparisons.load(), mismatches.load()};
  PMPI_Allreduce(MPI_IN_PLACE, total, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (world_rank == 0) std::printf("%ld comparisons, %ld mismatches on %d ranks\n", total[0], total[1], size);
  return total[1] == 0 ? total[0] : 0;
}

// Does PAPAYA_X name an algorithm?
inline bool is_algorithm_named(const std::string& variable) {
  const char* const value = std::getenv(variable.c_str());
  return value != nullptr && std::string(value) != "native" && std::string(value) != "auto";
}

// Across nodes papaya sets up what ranks may leave early in a call that all wait in, for messages of the sizes before
// it.
inline void meet(MPI_Comm comm) {
  static const bool is_across = std::getenv("PAPAYA_NODE_SIZE") != nullptr;
  if (is_across) MPI_Barrier(comm);
}
