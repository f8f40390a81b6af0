#include "api/error.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <time.h>

#include <cstdlib>
#include <string_view>

#include "base/log.hpp"
#include "base/mpi_library.hpp"
#include "interpose/implementation.hpp"

namespace papaya::weak {

namespace {
thread_local std::string last;

// Gives it back, also when a handler of the program's throws.
class Errhandler {
 public:
  explicit Errhandler(MPI_Comm comm) { PMPI_Comm_get_errhandler(comm, &handler_); }
  ~Errhandler() {
    if (handler_ != MPI_ERRHANDLER_NULL) PMPI_Errhandler_free(&handler_);
  }
  Errhandler(const Errhandler&) = delete;
  Errhandler& operator=(const Errhandler&) = delete;
  MPI_Errhandler get() const { return handler_; }

 private:
  MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;
};

// While it lives, the communicator has this handler.
class Replaced {
 public:
  Replaced(MPI_Comm comm, MPI_Errhandler handler) : comm_(comm), before_(comm) {
    PMPI_Comm_set_errhandler(comm, handler);
  }
  ~Replaced() { PMPI_Comm_set_errhandler(comm_, before_.get()); }
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;

 private:
  const MPI_Comm comm_;
  const Errhandler before_;
};
}  // namespace

bool is_mpi_running() noexcept {
  int is_there = 0;
  int is_over = 0;
  PMPI_Initialized(&is_there);
  PMPI_Finalized(&is_over);
  return is_there != 0 && is_over == 0;
}

int raise(const Error& error, const char* function, MPI_Comm comm, MPI_Errhandler handler) {
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
  const Replaced replaced(comm, handler);
  PMPI_Comm_call_errhandler(comm, error.code);
  return error.code;
}

int raise(const Error& error, const char* function, MPI_Comm comm) {
  if (!is_mpi_running()) return raise(error, function, MPI_COMM_NULL, MPI_ERRHANDLER_NULL);
  const Errhandler handler(comm);
  return raise(error, function, comm, handler.get());
}

void end_under_other_mpi() noexcept {
  char version[8192] = "";  // MPICH's maximum; that of Open MPI is less
  static_assert(sizeof version >= MPI_MAX_LIBRARY_VERSION_STRING);
  int length = 0;
  PMPI_Get_library_version(version, &length);
  const auto abi = reinterpret_cast<AbiGetVersion>(dlsym(RTLD_DEFAULT, "PMPI_Abi_get_version"));
  const char* const other = flavour_of(standard_abi_of(abi), version);
  if (other == nullptr || std::string_view(own_flavour) == other) return;
  log::error(
      fmt::format("libpapaya-weak-{} is linked to a program that runs under another MPI; link it with "
                  "`pkg-config --libs papaya-weak-{}`.",
                  own_flavour, other));
  std::_Exit(EXIT_FAILURE);
}

const char* last_sentence() noexcept {
  return last.c_str();
}

}  // namespace papaya::weak
