// MPI_Finalize of a program that is linked to this library: the threads of its collectives end before MPI's begins.
// Where libpapaya.so is preloaded, its own comes first and sees to it (base/weak_records.hpp).
#include <dlfcn.h>
#include <mpi.h>

#include "api/process.hpp"

#define PAPAYA_PUBLIC __attribute__((visibility("default")))

extern "C" {

// For papaya.py: what loads this library while it runs finds MPI's MPI_Finalize first.
PAPAYA_PUBLIC void papaya_weak_end_threads();
void papaya_weak_end_threads() {
  papaya::weak::end_threads();
}

// Another tool's, if there is one behind this library, else MPI's.
PAPAYA_PUBLIC int MPI_Finalize() {
  papaya::weak::end_threads();
  const auto next = reinterpret_cast<int (*)()>(dlsym(RTLD_NEXT, "MPI_Finalize"));
  return next != nullptr ? next() : PMPI_Finalize();
}

}  // extern "C"
