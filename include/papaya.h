/* papaya.h: what a program can tell papaya while it runs. Nothing has to be linked: where libpapaya.so is not preloaded
 * these functions do nothing. C99 and C++. From Python: ctypes.CDLL(None).papaya_phase_begin(b"solve"), under papaya
 * only.
 *
 * MPI_Pcontrol(0) switches recording off on the calling rank, MPI_Pcontrol(1) on again. Switch all ranks of a
 * communicator at the same place: a call is compared between ranks only if all of them record it. Algorithms stay in
 * use. */
#ifndef PAPAYA_H
#define PAPAYA_H

#include <dlfcn.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The rank begins a phase of the program, "assembly" say, inside the one it is in, if any. Calls belong to the
 * innermost phase that the process is in, whichever thread makes them; the report sums them up by phase. Names are
 * compared between ranks; of each the first 63 bytes count, and of a run the first 23 different names. Phases may be 16
 * deep. */
static inline void papaya_begin_phase(const char* name) {
  void (*begin)(const char*);
  *(void**)&begin = dlsym(NULL /* RTLD_DEFAULT */, "papaya_phase_begin");
  if (begin != NULL) begin(name);
}

/* The rank ends the phase that it began last. */
static inline void papaya_end_phase(void) {
  void (*end)(void);
  *(void**)&end = dlsym(NULL /* RTLD_DEFAULT */, "papaya_phase_end");
  if (end != NULL) end();
}

#ifdef __cplusplus
}
#endif

/* The weakly consistent collectives, whose library has to be linked. */
#if defined(__has_include)
#if __has_include(<mpi.h>)
#include "papaya_weak.h"
#endif
#endif

#endif
