// PAPAYA_VERIFY: algorithms whose results differed from MPI's own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/read/read.hpp"

namespace papaya::report {

// The first of one algorithm on one communicator.
struct WrongResult {
  std::string name;  // MPI_Allreduce
  std::string algorithm;
  std::string communicator;
  std::uint64_t call = 0;
  std::int32_t rank = 0;  // in MPI_COMM_WORLD
  std::uint64_t element = 0;
  std::string value;
  std::string mpi_value;
  bool is_dropped = false;

  // What a reader must not overlook, without a full stop.
  std::string sentence() const;
};

std::vector<WrongResult> wrong_results(const Run& run);

}  // namespace papaya::report
