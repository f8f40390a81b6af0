#include "interpose/end_job.hpp"

#include <mpi.h>
#include <time.h>

#include <cstdlib>

#include "base/log.hpp"

namespace papaya {

void end_job(const std::string& sentence, int code) noexcept {
  log::error(sentence);
  // MPICH's launcher now and then drops what it has not read yet when a job is aborted.
  const timespec to_be_read{0, 200'000'000};
  nanosleep(&to_be_read, nullptr);
  PMPI_Abort(MPI_COMM_WORLD, code);
  std::abort();
}

}  // namespace papaya
