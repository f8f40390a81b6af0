// What goes wrong in a function of papaya_weak.h: a class of MPI's and a sentence.
#pragma once

#include <mpi.h>

#include <string>

namespace papaya::weak {

struct Error {
  int code = MPI_SUCCESS;
  std::string sentence = {};
  bool is_set() const noexcept { return code != MPI_SUCCESS; }
};

// Tells the communicator's error handler, which may not return, or throw. Its code.
int raise(const Error& error, const char* function, MPI_Comm comm);
// The same with a handler that the communicator has only for this.
int raise(const Error& error, const char* function, MPI_Comm comm, MPI_Errhandler handler);

// The last one's sentence, on this thread.
const char* last_sentence() noexcept;

// MPI_Init has been called, and MPI_Finalize has not.
bool is_mpi_running() noexcept;
// If the process runs another MPI than this library is for: the handles of one mean nothing to the other, so there is
// not even an error handler to be called. Says so and ends the process.
void end_under_other_mpi() noexcept;

}  // namespace papaya::weak
