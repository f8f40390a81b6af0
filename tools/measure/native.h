// MPI's own function behind papaya's trampolines: PMPI_X called from a program passes through one as well.
#pragma once

#include <dlfcn.h>
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static inline void* native_function(const char* name) {
  Dl_info mpi;  // the object that defines a function papaya does not intercept
  void* library = NULL;
  void* function = NULL;
  if (dladdr((void*)(size_t)MPI_Get_library_version, &mpi) != 0)
    library = dlopen(mpi.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library != NULL) function = dlsym(library, name);
  if (function == NULL) {
    fprintf(stderr, "cannot find MPI's own %s\n", name);
    exit(1);
  }
  return function;
}
