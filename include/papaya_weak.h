/* papaya_weak.h: weakly consistent collectives, which MPI has no name for. A rank that is late does not hold up the
 * others, within a bound that the program sets. Included by papaya.h where there is an mpi.h. C99 and C++; Fortran has
 * the module papaya, Python papaya.py.
 *
 *   cc app.c $(pkg-config --cflags --libs papaya-weak-openmpi)      or papaya-weak-mpich
 *
 * The program runs with and without libpapaya.so preloaded. docs/weak.md and the man page papaya_weak(3) have examples.
 *
 * All functions return MPI_SUCCESS or an error of one of MPI's classes, through the error handler that the communicator
 * had when the collective was created: by default the job ends with a sentence on standard error. Under
 * MPI_ERRORS_RETURN, and in a handler of the program's, papaya_error() has the sentence. The handler is given a
 * communicator of papaya's with the same ranks. Where there is no collective, as with a handle that is null or has been
 * freed, it is the handler of the communicator that is passed, or of MPI_COMM_WORLD.
 *
 * A collective is created once and called often. Its calls on a rank are numbered from 1: these numbers are its clock.
 * What a rank brings to a call is its contribution of that clock. All ranks make the same number of calls. One thread
 * at a time uses a collective; several threads use several collectives at once under MPI_THREAD_MULTIPLE. */
#ifndef PAPAYA_WEAK_H
#define PAPAYA_WEAK_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A weakly consistent collective on one communicator. PAPAYA_WEAK_NULL is none. */
typedef struct papaya_weak_collective* papaya_weak;
#define PAPAYA_WEAK_NULL ((papaya_weak)0)

/* What a call had to work with. */
typedef struct papaya_weak_status {
  long long clock;    /* of the call */
  long long oldest;   /* the clock of the oldest contribution in the result; 0: it has none */
  long long own;      /* the clock of this rank's own contribution in it; 0: it has none */
  long long unused;   /* partial allreduce: calls of this rank's whose contributions are in no result yet */
  int ranks;          /* whose contributions are in it */
  MPI_Count elements; /* of the result that the call has brought up to date, from the first on */
  double share;       /* of the elements or ranks that took part */
  double residual;    /* sparse allreduce: norm of what is kept, over that of what there was; NaN if not finite */
  double waited;      /* seconds, for other ranks */
} papaya_weak_status;
#define PAPAYA_WEAK_STATUS_IGNORE ((papaya_weak_status*)0)

/* Creating is collective over `comm`, an intra-communicator, and waits for all its ranks, as MPI_Comm_dup does. The
 * communicator may be freed afterwards; `type` too, but not a user-defined `op`, which any thread that is in one of
 * these functions may call, for another collective as well. `count` elements of `type` and the
 * operation are the same on all ranks and in all calls. Where they differ, or the memory is not there, all ranks get an
 * error.
 *
 * `algorithm`: NULL or "auto" for papaya's choice, or NAME[:parameter=value,...] as `papaya info --algorithms` lists
 * them.
 *
 * Errors: MPI_ERR_COMM, MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_OP, MPI_ERR_ROOT; MPI_ERR_ARG for anything else that is
 * out of range or differs between ranks; MPI_ERR_UNSUPPORTED_OPERATION where the algorithm does not serve the type or
 * the operation; MPI_ERR_NO_MEM; MPI_ERR_OTHER before MPI_Init and after MPI_Finalize. */

/* Stale synchronous parallel allreduce (Iakymchuk et al. 2021, III-A; Faustino 2020). A result has one contribution of
 * every rank, each at most `slack` clocks old; a rank waits only for those that are older. Ranks that are ahead may be
 * in it with newer ones, by at most `slack` (ssp_sharded). With slack 0 it is MPI_Allreduce, with the same bits on all
 * ranks and in every run. */
int papaya_ssp_allreduce_create(MPI_Comm comm, MPI_Count count, MPI_Datatype type, MPI_Op op, int slack,
                                const char* algorithm, papaya_weak* collective);

/* The same with contributions that add up, as the parameter servers' that Faustino starts from: a result is the total
 * of all contributions of every rank up to a clock that is at most `slack` behind, of this rank up to this call. No
 * contribution is lost, and none counts twice. `op` is commutative. */
int papaya_ssp_accumulate_create(MPI_Comm comm, MPI_Count count, MPI_Datatype type, MPI_Op op, int slack,
                                 const char* algorithm, papaya_weak* collective);

/* Threshold broadcast and reduce (Iakymchuk et al. 2021, III-B), on binomial trees. `threshold` in (0, 1] is a share
 * of the data: the first elements, as many as that needs, and the rest of the receiver's buffer stays as it was. Or a
 * share of the ranks, of which at least so many take part, whole branches of the tree left out, the farthest from the
 * root first. With threshold 1 they are MPI_Bcast and MPI_Reduce. A broadcast reads the contribution at the root and
 * writes the result elsewhere; a reduce writes the result at the root. */
#define PAPAYA_OF_DATA 0
#define PAPAYA_OF_RANKS 1
int papaya_threshold_bcast_create(MPI_Comm comm, MPI_Count count, MPI_Datatype type, double threshold, int of, int root,
                                  papaya_weak* collective);
int papaya_threshold_reduce_create(MPI_Comm comm, MPI_Count count, MPI_Datatype type, MPI_Op op, double threshold,
                                   int of, int root, papaya_weak* collective);

/* Sparse allreduce: the sum of the largest elements of each rank, with error feedback (as Iakymchuk et al. announce).
 * Each rank sends the `share` of its elements that are largest in magnitude, NaN above all, in whole millionths
 * (rounded up) and at least one element; what it does not send is added to its next contribution. MPI_FLOAT and
 * MPI_DOUBLE. The sums of all results and of what is still kept are those of all contributions, but for rounding.
 * After papaya_weak_flush, which all ranks call between the same two calls and which waits for nobody, the next call
 * sends everything. */
int papaya_sparse_allreduce_create(MPI_Comm comm, MPI_Count count, MPI_Datatype type, double share,
                                   papaya_weak* collective);
int papaya_weak_flush(papaya_weak collective);

/* Partial allreduce of eager-SGD (Li et al., PPoPP'20). A call is executed as soon as one rank has come to it: the
 * first ("solo_allreduce", or NULL), or one that is drawn for the call ("majority_allreduce": on average half of the
 * others have come by then). The result has what the ranks have brought so far; what comes too late for its call is
 * combined into the next. A rank that is more than `lag` calls behind, a parameter of the algorithms, makes the others
 * wait. All ranks get the same results. Each contribution is in one of them, or is left when the last call is done:
 * papaya_weak_withdraw gives what is left of this rank's, and of how many calls it is: of none, `contributions` stays
 * as it was. `op` is commutative. Across nodes a rank is not waited for only under MPI_THREAD_MULTIPLE and with a
 * predefined op, when a thread answers for it; else a call waits for the first rank of each node. */
int papaya_partial_allreduce_create(MPI_Comm comm, MPI_Count count, MPI_Datatype type, MPI_Op op, const char* algorithm,
                                    papaya_weak* collective);
int papaya_weak_withdraw(papaya_weak collective, void* contributions, long long* calls);

/* Wait-avoiding group allreduce (Li et al., TPDS 2021), for models that are averaged. In each call the ranks are in
 * groups of `group`, a power of two, others than in the call before. A group's call is executed as soon as its first
 * member is there, with the newest contribution of every member; the calls 1, 1 + `period` and so on are of all ranks,
 * and wait for all. status.ranks says how many a result has. Across nodes a thread answers for a rank, as above. */
int papaya_group_allreduce_create(MPI_Comm comm, MPI_Count count, MPI_Datatype type, MPI_Op op, int group, int period,
                                  papaya_weak* collective);

/* One call: `contribution` has count elements, or is MPI_IN_PLACE, which takes it from `result`; `result` has room for
 * count elements. When it returns both may be used again. `status` may be PAPAYA_WEAK_STATUS_IGNORE.
 * Errors: MPI_ERR_BUFFER for a null pointer; MPI_ERR_REQUEST if a call is under way; MPI_ERR_PENDING if a limit is set
 * and has passed: papaya_error() names the missing ranks, and the call stays under way: papaya_weak_wait goes on. */
int papaya_weak_call(papaya_weak collective, const void* contribution, void* result, papaya_weak_status* status);

/* The same in parts (split phase, as GASPI's collectives with a timeout). Both buffers belong to the call until it is
 * done. A start never waits for other ranks. The call moves on while its rank tests or waits for it or for another of
 * its collectives, and only then: a rank that waits in MPI meanwhile, for one that cannot leave the same call without
 * it, waits for ever. */
int papaya_weak_start(papaya_weak collective, const void* contribution, void* result);
/* `flag`: whether the call is done; it moves on in here. Of a collective without a call under way it is 1. */
int papaya_weak_test(papaya_weak collective, int* flag, papaya_weak_status* status);
/* Waits, at most so many seconds; less than 0: for as long as it takes. What has not come by then stays pending. */
int papaya_weak_wait(papaya_weak collective, double seconds, int* flag, papaya_weak_status* status);

/* Calls and papaya_weak_free of this rank wait so many seconds at most; 0, as at first: for as long as it takes. */
int papaya_weak_set_limit(papaya_weak collective, double seconds);

/* What is in force, as "ssp_sharded:slack=4,consistent=0,thread=0,shard_bytes=4096 over shared memory": the algorithm
 * that `algorithm` stands for, all parameters, and "shared memory", "MPI's messages" or "UCX". `thread` is 0 where the
 * algorithm can have none, though it was asked for: over UCX, over MPI's messages below MPI_THREAD_MULTIPLE, with an
 * operation of the program's. `text` has room for `bytes`; what does not fit is cut off, 256 are enough. */
int papaya_weak_get_info(papaya_weak collective, char* text, int bytes);

/* Collective, waits for all ranks; sets the handle to PAPAYA_WEAK_NULL. Errors: MPI_ERR_REQUEST if a call is under way:
 * finish it first; MPI_ERR_ARG if ranks have made different numbers of calls, and MPI_ERR_PENDING if a limit is set and
 * other ranks have not come by then: the handle is gone, its memory is not given back before MPI_Finalize. What the
 * program does not free, on any rank, is freed in MPI_Finalize, which finishes calls that are under way. */
int papaya_weak_free(papaya_weak* collective);

/* What the last function of these that failed on this thread had to say; "" if none has. Valid until the next one. */
const char* papaya_error(void);

/* For bindings of other languages: the functions above that take handles of MPI's, with Fortran's; and Fortran's handle
 * of MPI_COMM_WORLD ("world"), of a type by numpy's name ("float64") and of an operation ("sum", "prod", "min", "max"),
 * -1 for others. Not under the standard ABI of MPI 5.0, which leaves Fortran's handles to Fortran. */
#if !defined(MPI_ABI_VERSION) || MPI_ABI_VERSION < 1
int papaya_ssp_allreduce_create_f(MPI_Fint comm, MPI_Count count, MPI_Fint type, MPI_Fint op, int slack,
                                  const char* algorithm, papaya_weak* collective);
int papaya_ssp_accumulate_create_f(MPI_Fint comm, MPI_Count count, MPI_Fint type, MPI_Fint op, int slack,
                                   const char* algorithm, papaya_weak* collective);
int papaya_threshold_bcast_create_f(MPI_Fint comm, MPI_Count count, MPI_Fint type, double threshold, int of, int root,
                                    papaya_weak* collective);
int papaya_threshold_reduce_create_f(MPI_Fint comm, MPI_Count count, MPI_Fint type, MPI_Fint op, double threshold,
                                     int of, int root, papaya_weak* collective);
int papaya_sparse_allreduce_create_f(MPI_Fint comm, MPI_Count count, MPI_Fint type, double share,
                                     papaya_weak* collective);
int papaya_partial_allreduce_create_f(MPI_Fint comm, MPI_Count count, MPI_Fint type, MPI_Fint op, const char* algorithm,
                                      papaya_weak* collective);
int papaya_group_allreduce_create_f(MPI_Fint comm, MPI_Count count, MPI_Fint type, MPI_Fint op, int group, int period,
                                    papaya_weak* collective);
MPI_Fint papaya_handle_f(const char* name);
#endif
int papaya_weak_call_in_place(papaya_weak collective, void* result, papaya_weak_status* status);
int papaya_weak_start_in_place(papaya_weak collective, void* result);

#ifdef __cplusplus
}
#endif

#endif
