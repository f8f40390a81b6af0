// The end of a job that cannot go on: what one rank alone has found, and the others cannot be told.
#pragma once

#include <mpi.h>

#include <string>

namespace papaya {

// Says the sentence and aborts with MPI's error code. `comm`: of all ranks.
[[noreturn]] void end_job(const std::string& sentence, int code, MPI_Comm comm = MPI_COMM_WORLD) noexcept;

}  // namespace papaya
