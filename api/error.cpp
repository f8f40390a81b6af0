#include "api/error.hpp"

#include <fmt/format.h>
#include <time.h>

#include "base/log.hpp"

namespace papaya::weak {

namespace {
thread_local std::string last;
}  // namespace

bool is_mpi_running() noexcept {
  int is_there = 0;
  int is_over = 0;
  PMPI_Initialized(&is_there);
  PMPI_Finalized(&is_over);
  return is_there != 0 && is_over == 0;
}

int raise(const Error& error, const char* function, MPI_Comm comm, MPI_Errhandler handler) noexcept {
  try {
    last = fmt::format("{}: {}", function, error.sentence);
  } catch (const std::bad_alloc&) {
    last.clear();
  }
  if (handler == MPI_ERRORS_RETURN) return error.code;
  const bool is_running = is_mpi_running();
  // A handler of the program's asks papaya_error().
  if (handler == MPI_ERRORS_ARE_FATAL || !is_running) log::error(last);
  if (!is_running) return error.code;
  if (handler == MPI_ERRORS_ARE_FATAL) {
    // MPICH's launcher now and then drops what it has not read yet when a job is aborted.
    const timespec to_be_read{0, 200'000'000};
    nanosleep(&to_be_read, nullptr);
  }
  MPI_Errhandler before = MPI_ERRHANDLER_NULL;
  PMPI_Comm_get_errhandler(comm, &before);
  PMPI_Comm_set_errhandler(comm, handler);
  PMPI_Comm_call_errhandler(comm, error.code);
  PMPI_Comm_set_errhandler(comm, before);
  if (before != MPI_ERRHANDLER_NULL) PMPI_Errhandler_free(&before);
  return error.code;
}

int raise(const Error& error, const char* function, MPI_Comm comm) noexcept {
  if (!is_mpi_running()) return raise(error, function, MPI_COMM_NULL, MPI_ERRHANDLER_NULL);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  PMPI_Comm_get_errhandler(comm, &handler);
  const int code = raise(error, function, comm, handler);
  PMPI_Errhandler_free(&handler);
  return code;
}

const char* last_sentence() noexcept {
  return last.c_str();
}

}  // namespace papaya::weak
