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

/* Calls of `collective` ("allreduce", "reduce", "bcast", "alltoall", "allgather", "barrier", "gather", "scatter",
 * "reduce_scatter", "reduce_scatter_block") go from now on where `selection` says, which is what PAPAYA_ALLREDUCE and
 * its like take: "native", "auto", "ring:chunk_bytes=65536", "0-4K:arrival_leader,4K-:native". Every rank of the job
 * calls this alike while none of them is inside a collective. A communicator alone: MPI_Comm_set_info with
 * papaya_allreduce and its like. Returns 0; or 1, with nothing changed, where papaya is not there or cannot, and then a
 * line on standard error says why. */
static inline int papaya_set_algorithm(const char* collective, const char* selection) {
  int (*set)(const char*, const char*);
  *(void**)&set = dlsym(NULL /* RTLD_DEFAULT */, "papaya_select");
  return set == NULL ? 1 : set(collective, selection);
}

#ifdef __cplusplus
}
#endif

#if defined(__has_include)
#if __has_include(<mpi.h>)
#include <mpi.h>
/* Where blocking calls of `collective` with messages of `bytes` on `comm` (of alltoall, allgather and
 * reduce_scatter_block: blocks) go now, with a predefined operation: writes "arrival_leader:self_serve_bytes=16384"
 * or, with the reason, "native: ..." into `text`, of `size` bytes; what does not fit is cut off. It may not hold for
 * the next call where PAPAYA_ADAPT tries something else in turn, or while an algorithm is not set up, which happens
 * after the first few calls. Local: it sends nothing and waits for nobody; no thread of the rank may be inside a
 * collective on `comm`. Returns 0; or 1, and an empty text, where papaya is not there or does not know. */
static inline int papaya_get_algorithm(const char* collective, MPI_Comm comm, size_t bytes, char* text, size_t size) {
  int (*explain)(const char*, const void*, unsigned long, char*, unsigned long);
  *(void**)&explain = dlsym(NULL /* RTLD_DEFAULT */, "papaya_explain");
  if (size > 0) text[0] = '\0';
  return explain == NULL ? 1 : explain(collective, &comm, bytes, text, size);
}

/* The weakly consistent collectives, and notified one-sided communication, whose library has to be linked. */
#include "papaya_segment.h"
#include "papaya_weak.h"
#endif
#endif

#endif
