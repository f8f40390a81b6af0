/* papaya_segment.h: one-sided notified communication, as GASPI has it: a rank writes into another's segment and raises
 * a notification there, which is visible only after the data. There is no matching call and no barrier; who has been
 * written to finds out by looking. Included by papaya.h where there is an mpi.h. C99 and C++.
 *
 *   cc app.c $(pkg-config --cflags --libs papaya-weak-openmpi)      or papaya-weak-mpich
 *
 * The program runs with and without libpapaya.so preloaded. docs/segments.md and the man page papaya_segment(3) have
 * examples.
 *
 * Data move through shared memory where all ranks of the segment are on one node, else by MPI's messages or UCX. Those
 * move while their rank is in one of the functions below or waits in papaya, on both sides: a rank that computes for
 * long calls papaya_notify_wait with 0 seconds now and then.
 *
 * Ranks may die: nothing that has a time limit waits for them longer, and those that live go on with each other. See
 * papaya_segment_state.
 *
 * All functions return MPI_SUCCESS or an error of one of MPI's classes, through the error handler that the communicator
 * had when the segment was created, as the functions of papaya_weak.h do; papaya_error() has the sentence. One thread
 * at a time uses a segment; several threads use several segments at once under MPI_THREAD_MULTIPLE. */
#ifndef PAPAYA_SEGMENT_H
#define PAPAYA_SEGMENT_H

#include <mpi.h>
#include <stddef.h>

#include "papaya_weak.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of each rank of a communicator, memory and notifications that the others write to. PAPAYA_SEGMENT_NULL is none. */
typedef struct papaya_notified_segment* papaya_segment;
#define PAPAYA_SEGMENT_NULL ((papaya_segment)0)

/* Collective over `comm`, an intra-communicator, which may be freed afterwards. Every rank has `bytes` of memory, which
 * may be 0, and the notifications 0 to `notifications` - 1, all zero; both are the same on all ranks. When it returns
 * all ranks may be written to.
 * Errors: MPI_ERR_COMM; MPI_ERR_ARG where a number is out of range or differs between ranks; MPI_ERR_NO_MEM;
 * MPI_ERR_OTHER before MPI_Init and after MPI_Finalize. */
int papaya_segment_create(MPI_Comm comm, size_t bytes, int notifications, papaya_segment* segment);

/* This rank's memory of it, aligned to 64 bytes. */
int papaya_segment_address(papaya_segment segment, void** address);

/* Writes `bytes` from `source` to `offset` of the memory of `rank`, which may be this one, then sets its notification
 * `id` to `value`, which is not 0. Does not wait for `rank`. The source stays as it is until papaya_write_wait says
 * that it may be changed. What one rank writes to another arrives in order: a notification says that all writes before
 * it have arrived, too. Each notification of a rank has one writer, and nothing is queued: a rank that sets it again
 * before it has been reset replaces the value. So a writer learns by a notification of its own that it may go on.
 * Errors: MPI_ERR_RANK, MPI_ERR_ARG, MPI_ERR_BUFFER for a null pointer, MPI_ERR_COUNT for more than 2^31 - 1 bytes,
 * MPI_ERR_OTHER if `rank` is lost (papaya_segment_state); nothing is written then. */
int papaya_write_notify(papaya_segment segment, int rank, size_t offset, const void* source, size_t bytes, int id,
                        unsigned value);
/* The same without data. */
int papaya_notify(papaya_segment segment, int rank, int id, unsigned value);

/* `flag`: whether all sources may be changed. Waits for that, at most so many seconds; less than 0: for as long as it
 * takes. Does not wait for what goes to a rank that is lost. */
int papaya_write_wait(papaya_segment segment, double seconds, int* flag);

/* `id`: one of the notifications `first` to `first` + `count` - 1 of this rank that is not zero, or -1 if there is none
 * within so many seconds; less than 0: it waits as long as it takes; 0: it only looks. Looks at them in turn, from the
 * one after that which it found last. */
int papaya_notify_wait(papaya_segment segment, int first, int count, double seconds, int* id);

/* `value` of a notification of this rank, 0 if it has not been set; it is 0 from then on. What has been written before
 * it was set can be read. */
int papaya_notify_reset(papaya_segment segment, int id, unsigned* value);

/* What carries the data: "shared memory", "MPI's messages" or "UCX". `text` has room for `bytes`. */
int papaya_segment_get_info(papaya_segment segment, char* text, int bytes);

/* Collective, waits for all ranks and until all that they have written has arrived; sets the handle to
 * PAPAYA_SEGMENT_NULL. What a program does not free, on any rank, is freed in MPI_Finalize.
 * Errors: MPI_ERR_OTHER if a rank is lost. The segment is as it was, and can only be discarded. */
int papaya_segment_free(papaya_segment* segment);

/* ---- when ranks die. A communicator's default error handler ends the job at the first write to a lost rank: give it
 * MPI_ERRORS_RETURN before it gets a segment. docs/segments.md says what else such a program has to do. */

#define PAPAYA_STATE_HEALTHY 0
#define PAPAYA_STATE_CORRUPT 1

/* `states`, which has a place for each rank: whether it is lost, as far as this rank knows; others may not know yet.
 * A rank is lost for good
 *  - once UCX, or MPICH between nodes, has told of a failure in reaching it, which takes writes to it;
 *  - on this rank's node (in its namespace of processes), once its process has ended;
 *  - once papaya_segment_exclude says so. Open MPI does not tell of failures between nodes, and nothing tells of a rank
 *    that hangs: a program that has to know looks for signs of life, which are notifications, and excludes who gives
 *    none. */
int papaya_segment_state(papaya_segment segment, int* states);

/* From here on `rank`, another one, is lost to this rank; the others are not told. What comes from there still comes.
 * Sources of what is on its way there may be changed, but stay where they are until the process ends: if the rank
 * lives, MPI may still read them. Errors: MPI_ERR_RANK. */
int papaya_segment_exclude(papaya_segment segment, int rank);

/* Instead of papaya_segment_free, where not all ranks can: not collective, and waits for nobody, as MPI_Finalize does
 * not any more for this segment. What this rank has written may not arrive. Its memory stays mapped, since others may
 * still write to it, and sources that papaya_write_wait has not given back stay where they are, both until the process
 * ends. Sets the handle to PAPAYA_SEGMENT_NULL. Who frees the segment then waits for this rank for ever: all discard
 * it. */
int papaya_segment_discard(papaya_segment* segment);

#ifdef __cplusplus
}
#endif

#endif
