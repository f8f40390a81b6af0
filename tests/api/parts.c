// Collectives of a part of the data or of the ranks, as a program calls them: threshold broadcast and reduce, sparse
// allreduce, partial and group allreduce.
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "papaya.h"

static void stop_now_and_then(int call) {
  if ((call * 7 + rank * 3) % 5 == 0) usleep(300);
}

static void bcast(MPI_Comm comm, int count, double threshold, int of, int root) {
  int size, me;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &me);
  papaya_weak bcast;
  CHECK(papaya_threshold_bcast_create(comm, count, MPI_INT, threshold, of, root, &bcast) == MPI_SUCCESS);
  int* const data = malloc((size_t)count * sizeof(int) + 1);
  const int part = of == PAPAYA_OF_RANKS ? count : (int)ceil(threshold * count);
  for (int call = 1; call <= 8; ++call) {
    for (int i = 0; i < count; ++i) data[i] = me == root ? call * 1000 + i : -call;
    stop_now_and_then(call);
    papaya_weak_status status;
    CHECK(papaya_weak_call(bcast, me == root ? data : NULL, me == root ? NULL : data, &status) == MPI_SUCCESS);
    CHECK(status.clock == call);
    CHECK(status.elements == part || (of == PAPAYA_OF_RANKS && me != root && status.elements == 0));
    for (int i = 0; i < count; ++i) CHECK(data[i] == (me == root || i < status.elements ? call * 1000 + i : -call));
    int have = status.elements == count, all = 0;
    MPI_Allreduce(&have, &all, 1, MPI_INT, MPI_SUM, comm);
    if (of == PAPAYA_OF_RANKS && count > 0) CHECK(all >= threshold * size && (threshold < 1 || all == size));
  }
  CHECK(papaya_weak_free(&bcast) == MPI_SUCCESS);
  free(data);
}

// In a type with holes: those of the result stay.
static void reduce(MPI_Comm comm, int count, double threshold, int of, int root) {
  int size, me;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &me);
  papaya_weak reduce;
  CHECK(papaya_threshold_reduce_create(comm, count, MPI_LONG, MPI_SUM, threshold, of, root, &reduce) == MPI_SUCCESS);
  long* const mine = malloc((size_t)count * sizeof(long) + 1);
  long* const result = malloc((size_t)count * sizeof(long) + 1);
  const int part = of == PAPAYA_OF_RANKS ? count : (int)ceil(threshold * count);
  for (int call = 1; call <= 8; ++call) {
    for (int i = 0; i < count; ++i) {
      mine[i] = (1l << (4 * me)) * (call + i % 2);
      result[i] = -7;
    }
    stop_now_and_then(call);
    papaya_weak_status status;
    const int in_place = me == root && call % 2 == 0;
    if (in_place) memcpy(result, mine, (size_t)count * sizeof(long));
    CHECK(papaya_weak_call(reduce, in_place ? MPI_IN_PLACE : mine, me == root ? result : NULL, &status) == MPI_SUCCESS);
    if (me != root) continue;
    CHECK(status.elements == part && (count == 0 || (status.ranks >= 1 && status.ranks <= size)));
    if (of == PAPAYA_OF_RANKS) CHECK(status.ranks >= threshold * size);
    for (int i = 0; i < count; ++i) {
      int took_part = 0;
      for (int other = 0; other < size; ++other) {
        const long digit = result[i] >> (4 * other) & 15;
        if (i < part) CHECK(digit == 0 || digit == call + i % 2);
        took_part += digit != 0;
      }
      if (i < part) CHECK(took_part == status.ranks);
      if (i >= part) CHECK(result[i] == (in_place ? mine[i] : -7));
    }
  }
  CHECK(papaya_weak_free(&reduce) == MPI_SUCCESS);
  free(mine);
  free(result);
}

static void sparse(MPI_Comm comm, int count, double share) {
  papaya_weak sparse;
  CHECK(papaya_sparse_allreduce_create(comm, count, MPI_DOUBLE, share, &sparse) == MPI_SUCCESS);
  double* const mine = calloc((size_t)count, sizeof(double));
  double* const result = calloc((size_t)count, sizeof(double));
  double* const sum = calloc((size_t)count, sizeof(double));
  double* const expected = calloc((size_t)count, sizeof(double));
  for (int call = 1; call <= 6; ++call) {
    for (int i = 0; i < count; ++i) mine[i] = (i * 31 + rank * 17 + call * 7) % 97 - 48;
    if (call == 6) CHECK(papaya_weak_flush(sparse) == MPI_SUCCESS);
    papaya_weak_status status;
    CHECK(papaya_weak_call(sparse, mine, result, &status) == MPI_SUCCESS);
    for (int i = 0; i < count; ++i) sum[i] += result[i];
    if (count > 10) CHECK(call == 6 ? status.residual == 0 : status.residual > 0 && status.residual < 1);
    MPI_Allreduce(MPI_IN_PLACE, mine, count, MPI_DOUBLE, MPI_SUM, comm);
    for (int i = 0; i < count; ++i) expected[i] += mine[i];
  }
  for (int i = 0; i < count; ++i) CHECK(sum[i] == expected[i]);
  CHECK(papaya_weak_free(&sparse) == MPI_SUCCESS);
  free(mine);
  free(result);
  free(sum);
  free(expected);
}

// Each rank has a digit of its own, so results and what is left add up to what has been brought. All ranks have the
// same.
static void partial(const char* algorithm, int count) {
  enum { calls = 60 };
  papaya_weak partial;
  CHECK(papaya_partial_allreduce_create(MPI_COMM_WORLD, count, MPI_LONG, MPI_SUM, algorithm, &partial) == MPI_SUCCESS);
  long* const mine = calloc((size_t)count, sizeof(long));
  long* const result = calloc((size_t)count, sizeof(long));
  long* const sum = calloc((size_t)count, sizeof(long));
  long long unused = 0;
  for (int call = 1; call <= calls; ++call) {
    stop_now_and_then(call);
    for (int i = 0; i < count; ++i) mine[i] = 1l << 8 * rank;
    papaya_weak_status status;
    CHECK(papaya_weak_call(partial, mine, result, &status) == MPI_SUCCESS);
    CHECK(status.clock == call && status.ranks >= 1 && status.ranks <= ranks && status.elements == count);
    CHECK(status.own <= call && status.oldest >= 1 && status.oldest <= call);
    unused = status.unused;
    for (int i = 0; i < count; ++i) {
      sum[i] += result[i];
      int in_it = 0;
      for (int other = 0; other < ranks; ++other) in_it += (result[i] >> 8 * other & 255) != 0;
      CHECK(in_it == status.ranks);
    }
  }
  long long left = -1;
  CHECK(papaya_weak_withdraw(partial, mine, &left) == MPI_SUCCESS);
  CHECK(left <= unused);  // others may have taken it since
  for (int i = 0; i < count; ++i) {
    CHECK((sum[i] >> 8 * rank & 255) == calls - left);
    CHECK(left == 0 || mine[i] == left << 8 * rank);
  }
  long other = count > 0 ? sum[0] : 0;
  MPI_Bcast(&other, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  CHECK(count == 0 || sum[0] == other);
  CHECK(papaya_weak_free(&partial) == MPI_SUCCESS);
  free(mine);
  free(result);
  free(sum);
}

// The last rank is in MPI until the others have made as many calls as it may be behind: across nodes a thread answers
// for it.
static void away(void) {
  enum { lag = 4 };
  papaya_weak partial;
  CHECK(papaya_partial_allreduce_create(MPI_COMM_WORLD, 20000, MPI_LONG, MPI_SUM, "solo_allreduce:lag=4", &partial) ==
        MPI_SUCCESS);
  long* const mine = calloc(20000, sizeof(long));
  long* const result = calloc(20000, sizeof(long));
  const int is_away = rank == ranks - 1 && ranks > 1;
  if (is_away) MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  papaya_weak_status status;
  long sum = 0;
  for (int call = 1; call <= lag; ++call) {
    for (int i = 0; i < 20000; ++i) mine[i] = 1;
    CHECK(papaya_weak_call(partial, mine, result, &status) == MPI_SUCCESS);
    CHECK(is_away || ranks == 1 || status.ranks < ranks);
    CHECK(!is_away || status.own == 0);
    CHECK(result[0] == result[19999]);
    sum += result[19999];
  }
  if (rank == 0 && ranks > 1) MPI_Send(NULL, 0, MPI_BYTE, ranks - 1, 1, MPI_COMM_WORLD);
  // Of all, but for what is in no result yet.
  MPI_Barrier(MPI_COMM_WORLD);
  long long left = 0, all_left = 0;
  CHECK(papaya_weak_withdraw(partial, mine, &left) == MPI_SUCCESS);
  MPI_Allreduce(&left, &all_left, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  CHECK(!is_away || left == lag);
  CHECK(sum + all_left == (long)lag * ranks);
  CHECK(papaya_weak_free(&partial) == MPI_SUCCESS);
  free(mine);
  free(result);
}

// Each rank's digit is its call.
static void group(int members, int period) {
  papaya_weak group;
  CHECK(papaya_group_allreduce_create(MPI_COMM_WORLD, 2, MPI_LONG, MPI_SUM, members, period, &group) == MPI_SUCCESS);
  for (int call = 1; call <= 40; ++call) {
    stop_now_and_then(call);
    long mine[2] = {(long)call << 8 * rank, (long)call << 8 * rank}, result[2];
    papaya_weak_status status;
    CHECK(papaya_weak_call(group, mine, result, &status) == MPI_SUCCESS);
    CHECK(result[0] == result[1]);
    int in_it = 0;
    for (int other = 0; other < ranks; ++other) {
      const long digit = result[0] >> 8 * other & 255;
      in_it += digit != 0;
      CHECK(digit == 0 || (digit <= call && digit > call - 2 * period));
      if ((call - 1) % period == 0) CHECK(digit == call);
    }
    CHECK(in_it == status.ranks && (result[0] >> 8 * rank & 255) == status.own && status.own > 0);
  }
  CHECK(papaya_weak_free(&group) == MPI_SUCCESS);
}

static void refusals(void) {
  papaya_weak none;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK(papaya_threshold_bcast_create(MPI_COMM_WORLD, 1, MPI_INT, 0, 0, 0, &none) == MPI_ERR_ARG &&
        strstr(papaya_error(), "share is 0") != NULL);
  CHECK(papaya_threshold_bcast_create(MPI_COMM_WORLD, 1, MPI_INT, 1.5, 0, 0, &none) == MPI_ERR_ARG);
  CHECK(papaya_threshold_bcast_create(MPI_COMM_WORLD, 1, MPI_INT, NAN, 0, 0, &none) == MPI_ERR_ARG);
  CHECK(papaya_threshold_bcast_create(MPI_COMM_WORLD, 1, MPI_INT, 1, 2, 0, &none) == MPI_ERR_ARG);
  CHECK(papaya_threshold_bcast_create(MPI_COMM_WORLD, 1, MPI_INT, 1, 0, ranks, &none) == MPI_ERR_ROOT);
  CHECK(papaya_threshold_reduce_create(MPI_COMM_WORLD, 1, MPI_INT, MPI_SUM, 0.5, 0, rank, &none) == MPI_ERR_ROOT);
  CHECK(papaya_threshold_reduce_create(MPI_COMM_WORLD, 1, MPI_INT, MPI_SUM, rank == 0 ? 0.5 : 0.25, 0, 0, &none) ==
        MPI_ERR_ARG);
  CHECK(papaya_sparse_allreduce_create(MPI_COMM_WORLD, 1, MPI_INT, 0.5, &none) == MPI_ERR_UNSUPPORTED_OPERATION &&
        strstr(papaya_error(), "float or double") != NULL);
  CHECK(papaya_group_allreduce_create(MPI_COMM_WORLD, 1, MPI_INT, MPI_SUM, 3, 5, &none) ==
        MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK(papaya_sparse_allreduce_create(MPI_COMM_WORLD, 1, MPI_FLOAT, -0.5, &none) == MPI_ERR_ARG);
  CHECK(papaya_threshold_bcast_create(MPI_COMM_WORLD, 1, MPI_INT, 1, 0, 0, &none) == MPI_SUCCESS);
  CHECK(papaya_weak_flush(none) == MPI_ERR_ARG && strstr(papaya_error(), "keeps") != NULL);
  CHECK(papaya_weak_free(&none) == MPI_SUCCESS);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  const int has_threads = level == MPI_THREAD_MULTIPLE;
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  const int last = ranks - 1;
  bcast(MPI_COMM_WORLD, 1000, 1, PAPAYA_OF_DATA, 0);
  bcast(MPI_COMM_WORLD, 10001, 0.25, PAPAYA_OF_DATA, last);
  bcast(MPI_COMM_WORLD, 300000, 0.5, PAPAYA_OF_DATA, 0);
  bcast(MPI_COMM_WORLD, 100, 0.5, PAPAYA_OF_RANKS, last);
  bcast(half, 0, 1, PAPAYA_OF_DATA, 0);
  reduce(MPI_COMM_WORLD, 1000, 1, PAPAYA_OF_DATA, last);
  reduce(MPI_COMM_WORLD, 10001, 0.25, PAPAYA_OF_DATA, 0);
  reduce(MPI_COMM_WORLD, 300000, 0.5, PAPAYA_OF_DATA, last);
  reduce(MPI_COMM_WORLD, 100, 0.5, PAPAYA_OF_RANKS, 0);
  reduce(half, 1, 0.01, PAPAYA_OF_DATA, 0);
  sparse(MPI_COMM_WORLD, 1000, 0.05);
  sparse(MPI_COMM_WORLD, 1, 0.05);
  MPI_Comm_free(&half);
  partial(NULL, 1);
  partial("majority_allreduce:lag=1", 1000);
  partial("solo_allreduce:lag=0", 3);
  partial("majority_allreduce:lag=2,thread=0", 700);
  if (has_threads) away();
  group(2, 5);
  group(1, 1);
  refusals();
  return end();
}
